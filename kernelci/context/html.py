"""HTML as plain text with Markdown headings; what a page hides or runs is dropped, frames are named."""

from html.parser import HTMLParser

_DROPPED = frozenset(["script", "style", "noscript", "template", "svg", "nav", "head", "footer", "button", "iframe"])
MAX_DEPTH = 500
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "frame"]
)
_BLOCK = frozenset(
    [
        "p",
        "div",
        "section",
        "article",
        "li",
        "ul",
        "ol",
        "dl",
        "dt",
        "dd",
        "table",
        "tr",
        "br",
        "hr",
        "blockquote",
        "figure",
        "main",
        "header",
    ]
)
_HEADING = {f"h{level}": level for level in range(1, 7)}


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.dropped: list[str] = []
        self.pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            if tag in _BLOCK and not self.dropped:
                self.out.append("\n")
            return
        if self.dropped or tag in _DROPPED or _hidden(dict(attrs)):
            if len(self.dropped) < MAX_DEPTH:
                self.dropped.append(tag)
            return
        if tag in _HEADING:
            self.out.append(f"\n\n{'#' * _HEADING[tag]} ")
        elif tag == "pre":
            self.pre += 1
            self.out.append("\n```\n")
        elif tag in _BLOCK:
            self.out.append("\n")
        elif tag in ("td", "th"):
            self.out.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if self.dropped:
            self._close(tag)
        elif tag == "pre" and self.pre:
            self.pre -= 1
            self.out.append("\n```\n")
        elif tag in _HEADING or tag in _BLOCK:
            self.out.append("\n")

    def _close(self, tag: str) -> None:
        """End what is dropped up to the innermost element of that name; a stray end tag ends nothing."""
        if tag in self.dropped:
            while self.dropped.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.dropped:
            return
        if self.pre:
            self.out.append(data)
            return
        words = " ".join(data.split())
        if words:
            self.out.append(f"{' ' if data[0].isspace() else ''}{words}{' ' if data[-1].isspace() else ''}")


def _hidden(attributes: dict[str, str | None]) -> bool:
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style or "visibility:hidden" in style


class _Frames(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        source = dict(attrs).get("src")
        if tag in ("frame", "iframe") and source:
            self.found.append(source)


def text(page: str) -> str:
    """What a reader sees of the page."""
    parser = _Text()
    parser.feed(page)
    parser.close()
    lines = [line.rstrip() for line in "".join(parser.out).splitlines()]
    kept = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    return "\n".join(kept).strip() + "\n"


def frames(page: str) -> list[str]:
    """The addresses of the page's frames, as they stand."""
    parser = _Frames()
    parser.feed(page)
    parser.close()
    return list(dict.fromkeys(parser.found))
