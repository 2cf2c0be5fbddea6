"""Bytes of a source as text, or the reason why they are left out: too large, binary, a path that leads elsewhere."""

import json
import re
from pathlib import PurePosixPath

from kernelci.context import html

MAX_FILE_BYTES = 8 * 2**20
MAX_PAGE_BYTES = 64 * 2**20
MAX_LINE = 2000
SUFFIXES = frozenset(
    [
        ".py",
        ".pyi",
        ".md",
        ".rst",
        ".txt",
        ".h",
        ".hpp",
        ".hh",
        ".cuh",
        ".cu",
        ".inl",
        ".cpp",
        ".cc",
        ".c",
        ".ipynb",
        ".html",
        ".htm",
        ".toml",
        ".ptx",
        ".td",
    ]
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ue000-\uf8ff]"
)


class LeftOut(Exception):
    """A file that is not taken; the message is the reason."""


def checked(path: str) -> str:
    """A source's path in POSIX form. Raises LeftOut for one that leaves its source or can't be shown on one line."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise LeftOut("path leads out of its source")
    if any("\ud800" <= sign <= "\udfff" for sign in path):
        raise LeftOut("path is no text")
    if _CONTROL.search(path) or "\n" in path or "\t" in path or "\r" in path or len(path) > 500:
        raise LeftOut("path has control characters or is too long")
    return str(pure)


def wanted(path: str) -> bool:
    """Whether a file of this name is a kind that is read."""
    return PurePosixPath(path).suffix.lower() in SUFFIXES


def text_of(path: str, data: bytes, *, limit: int = MAX_FILE_BYTES, charset: str = "") -> str:
    """The text, with bounded lines and without control characters. Raises LeftOut."""
    if len(data) > limit:
        raise LeftOut(f"larger than {limit // 2**20} MiB")
    text = decoded(data, charset)
    match PurePosixPath(path).suffix.lower():
        case ".ipynb":
            text = _notebook(text)
        case ".html" | ".htm":
            text = html.text(text)
    bounded = _CONTROL.sub("", "\n".join(map(_bounded, text.splitlines())))
    return bounded.encode(errors="replace").decode()  # JSON may hold halves of signs, which nothing can store


def decoded(data: bytes, charset: str = "") -> str:
    """Bytes as text: the named charset, UTF-8 or UTF-16 by its mark, else Windows' Latin. Raises LeftOut for binary."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    if b"\0" in data[:8192]:
        raise LeftOut("binary")
    for name in filter(None, (charset, "utf-8-sig")):
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", errors="replace")


def _bounded(line: str) -> str:
    if len(line) <= MAX_LINE:
        return line
    return f"{line[:MAX_LINE]} … [line cut by kernelci: {len(line) - MAX_LINE:,} more characters]"


def _notebook(text: str) -> str:
    """The cells of a notebook: prose as it is, code fenced."""
    try:
        cells = json.loads(text)["cells"]
        sources = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LeftOut("no notebook") from error
    return "\n\n".join(source if kind == "markdown" else f"```python\n{source}\n```" for kind, source in sources)
