"""A script's section of docs/measurements.md, between marks that bear the script's name."""

from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"


def write(name: str, text: str, page: Path = PAGE) -> None:
    """Put `text` (Markdown from its heading on) where the last one of that name stood, or at the page's end."""
    page.write_text(spliced(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def spliced(page: str, name: str, text: str) -> str:
    """`page` with `text` between the marks of `name`; whatever stands outside them stays as it is.

    Raises ValueError where the page has one mark without the other: what is whose can't be told.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    section = f"{begin}\n{text.strip()}\n{end}\n"
    before, found, rest = page.partition(begin)
    within, closed, after = rest.partition(end)
    if bool(found) != bool(closed) or begin in within + after or end in before + after:
        raise ValueError(f"the page needs one {begin} and, behind it, one {end}, or neither")
    return f"{before}{section}{after.removeprefix(chr(10))}" if found else f"{page.rstrip()}\n\n{section}"
