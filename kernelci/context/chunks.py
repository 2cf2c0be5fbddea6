"""A text in chunks that follow its structure: function, class, section, PTX instruction. Each knows its lines."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from msgspec import Struct

MAX_BODY = 6000
MAX_DOC = 2000


class Chunk(Struct, frozen=True):
    """One thing to find: what it is called, what is said of it, and its text."""

    kind: str
    """function, class, method, module, instruction, variant, declaration, section or text."""
    symbol: str
    first: int
    last: int
    title: str
    doc: str = ""
    body: str = ""
    names: str = ""
    """Further names by which it is found."""


def of(path: str, text: str) -> Iterator[Chunk]:
    """The chunks of a file, by the structure that its name promises; plain pieces where it does not parse."""
    from kernelci.context import chunks_headers, chunks_python, chunks_text

    suffix = PurePosixPath(path).suffix.lower()
    if suffix in (".py", ".pyi"):
        yield from chunks_python.of(path, text)
    elif suffix in (".h", ".hpp", ".hh", ".cuh", ".cu", ".inl", ".cpp", ".cc", ".c"):
        yield from chunks_headers.of(path, text)
    else:
        yield from chunks_text.of(path, text)


def pieces(lines: list[str], first: int) -> Iterator[tuple[int, int, str]]:
    """Lines in pieces of bounded size: first and last line (counted from `first`), and the text."""
    start, size = 0, 0
    for index, line in enumerate(lines):
        if size and size + len(line) > MAX_BODY:
            yield first + start, first + index - 1, "\n".join(lines[start:index])
            start, size = index, 0
        size += len(line) + 1
    if start < len(lines):
        yield first + start, first + len(lines) - 1, "\n".join(lines[start:])


def split(chunk: Chunk, lines: list[str]) -> Iterator[Chunk]:
    """The chunk with its lines as body; what is longer than one chunk goes on under the same symbol."""
    for number, (first, last, body) in enumerate(pieces(lines, chunk.first)):
        if number:
            yield Chunk("part", chunk.symbol, first, last, f"{chunk.title} (continued)", body=body)
        else:
            yield Chunk(chunk.kind, chunk.symbol, first, chunk.last, chunk.title, chunk.doc, body, chunk.names)
