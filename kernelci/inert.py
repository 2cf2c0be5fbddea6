"""Text that nobody vouches for, made harmless for terminals and for Markdown.

Messages, logs, names and notes may come from the code under test. `clean` is for every reader; `prose`, `code` and
`fence` are the only ways by which such text gets into Markdown.
"""

import re
import unicodedata
from collections.abc import Iterable

# Terminal sequences: CSI; strings (OSC, DCS, SOS, PM, APC) to their terminator or the line's end; the short ones.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_BREAKS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Controls, invisible formatting (bidi, zero-width, tags), surrogates, private use and unassigned code points.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn")
_NO_WIDTH = "&#8203;"
_MARKUP = re.compile(r"[&<>|\\`*\[\]~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^[-+=]|^[0-9]{1,9}[.)](?= |$)")
_LINKS = re.compile(r"(?i)(?<!&)#|@|:(?=//)|www(?=\.)|gh-(?=[0-9])|[0-9a-f]{20}(?=[0-9a-f]{20})")
LINE_CHARACTERS = 400
NAME_CHARACTERS = 100


class Safe(str):
    """Markdown that was made here, as against text that still has to be escaped."""

    __slots__ = ()


def clean(text: str) -> str:
    """Printable text: no terminal sequence, control, bidi or invisible character is left; lines end in a newline."""
    text = _BREAKS.sub("\n", _ESCAPES.sub("", text)).expandtabs(4)
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(char for char in text if char == "\n" or unicodedata.category(char) not in _UNSEEN)


def line(text: str, limit: int = LINE_CHARACTERS) -> str:
    """Cleaned text on one line, at most `limit` characters of it."""
    return clip(" ".join(clean(text).split()), limit)


def clip(text: str, limit: int = LINE_CHARACTERS) -> str:
    """One line of at most `limit` characters; what is left out is counted."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… (+{len(text) - limit:,} characters)"


def ours(text: str) -> Safe:
    """Text from our own tables (`kernelci.reasons`), which is Markdown as it stands."""
    return Safe(text)


def head(text: str, lines: int) -> str:
    """The first lines of cleaned text, each clipped; what is left out is counted."""
    found = _lines(text)
    more = [f"… ({len(found) - lines:,} more lines in results.json)"] if len(found) > lines else []
    return "\n".join([*map(clip, found[:lines]), *more])


def tail(text: str, lines: int) -> str:
    """The last lines of cleaned text, each clipped; what is left out is counted."""
    found = _lines(text)
    more = [f"… ({len(found) - lines:,} earlier lines in results.json)"] if len(found) > lines else []
    return "\n".join([*more, *map(clip, found[-lines:] if lines else [])])


def _lines(text: str) -> list[str]:
    return [each.rstrip() for each in clean(text).strip("\n").split("\n")]


def prose(text: str, limit: int = LINE_CHARACTERS) -> Safe:
    """One line as running Markdown: nothing in it is markup, a mention, a reference or a link any more.

    GitHub looks for mentions and references after it has decoded entities, so these are broken by a zero-width space.
    """
    escaped = _MARKUP.sub(_entities, line(text, limit))
    return Safe(_LINKS.sub(lambda match: match.group() + _NO_WIDTH, escaped))


def _entities(match: re.Match[str]) -> str:
    """Digits of a list number stay digits; every other character becomes its entity."""
    return "".join(char if char.isdigit() else f"&#{ord(char)};" for char in match.group())


def code(text: str, limit: int = NAME_CHARACTERS) -> Safe:
    """One line in code type, fit for a table cell. As HTML: a code span can't hold every run of backticks and pipes."""
    shown = prose(text, limit)
    return Safe(f"<code>{shown}</code>") if shown else shown


def codes(texts: Iterable[str], limit: int = 8) -> Safe:
    """A list in code type; beyond `limit` only the number is given."""
    every = list(texts)
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return Safe(", ".join(code(text) for text in every[:limit]) + more)


def fence(text: str, language: str = "text") -> Safe:
    """A block in which nothing is interpreted: the fence is longer than any run of backticks or tildes inside."""
    body = clean(text).replace("<!--", "<!\u200b--")  # no marker of ours can be forged, not even as a substring
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    bars = "`" * max(3, longest + 1)
    return Safe(f"{bars}{language}\n{body}\n{bars}")
