"""A comparison of dumps as text: per build the likeliest cause, figures, opcodes, and the lines that differ."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kernelci import inert
from kernelci.dumps import comparing, difference
from kernelci.dumps.comparing import Compared
from kernelci.dumps.specimen import Specimen, read

OPCODES = 20
LINES = 40


class Told(Struct, frozen=True):
    """One pair of builds, as `kernelci diff --json` prints it."""

    place: str
    identical: bool
    causes: tuple[str, ...]
    figures: dict[str, tuple[float, float]]
    """By tag, base and head."""
    classes: dict[str, tuple[int, int]]
    opcodes: dict[str, tuple[int, int]]
    trouble: tuple[str, ...] = ()


class Answer(Struct, frozen=True):
    """Both folders."""

    builds: tuple[Told, ...]
    only_base: tuple[str, ...]
    only_head: tuple[str, ...]


def answer(base: Path, head: Path) -> Answer:
    """Two folders, reports' or of dumps, as data. Raises ConfigError where one has no machine code."""
    found = comparing.paired(read(base), read(head))
    told = tuple(_told(comparing.compare(*pair)) for pair in found.pairs)
    return Answer(told, found.only_base, found.only_head)


def _told(found: Compared) -> Told:
    return Told(
        found.place,
        found.identical,
        tuple(cause.note() for cause in found.causes),
        {figure.tag: (figure.base, figure.head) for figure in found.figures},
        {name: (old, new) for name, old, new in found.classes()},
        {name: (old, new) for name, old, new in found.opcodes()},
        found.trouble,
    )


def folders(base: Path, head: Path, lines: int = LINES) -> str:
    """Two folders as text, with at most so many lines of each difference. Raises ConfigError as `answer` does."""
    found = comparing.paired(read(base), read(head))
    told = [f"only in base: {inert.line(place)}" for place in found.only_base]
    told += [f"only in head: {inert.line(place)}" for place in found.only_head]
    for old, new in found.pairs:
        told += _pair(old, new, lines)
    return "\n".join(told)


def _pair(base: Specimen, head: Specimen, lines: int) -> Iterator[str]:
    found = comparing.compare(base, head)
    if found.identical and not found.figures and not found.causes:
        yield f"{inert.line(found.place)}: the same machine code"
        return
    yield inert.line(found.place)
    yield from (f"  {inert.line(note)}" for note in found.notes())
    yield from (f"  {figure.text()}" for figure in found.figures)
    yield from _counts("class", list(found.classes()))
    yield from _counts("opcode", list(found.opcodes()))
    yield from _lines("SASS", difference.of_sass(base.code(), head.code()) if lines else (), lines)
    yield from _lines("PTX", difference.of_ptx(base.ptx, head.ptx) if lines else (), lines)


def _counts(what: str, found: list[tuple[str, int, int]]) -> Iterator[str]:
    if found:
        yield f"  {what:<20} {'base':>6}   {'head':<6}"
    yield from (f"  {name:<20} {old:>6} → {new:<6} ({new - old:+d})" for name, old, new in found[:OPCODES])
    if len(found) > OPCODES:
        yield f"  and {len(found) - OPCODES} more"


def _lines(what: str, found: tuple[difference.Line, ...], limit: int) -> Iterator[str]:
    if found:
        yield f"  {what}, base - and head +:"
    yield from (f"    {line.mark} {inert.line(line.text, 160)}" for line in found[:limit])
    if len(found) > limit:
        yield f"    and {len(found) - limit:,} more lines (--lines)"
