"""Builds of base against builds of head: paired, counted, told in lines, the likeliest cause of a slowdown first."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kernelci.dumps import causes, opcodes, sass
from kernelci.dumps.anatomy import dissect
from kernelci.dumps.causes import Cause, Side
from kernelci.dumps.specimen import Specimen, folders
from kernelci.model import Unit
from kernelci.pairing import matched

UNKNOWN_SHARE = 0.05  # of instructions: beyond it the classes say little


class Figure(Struct, frozen=True):
    """One number of both sides."""

    tag: str
    name: str
    unit: Unit
    base: float
    head: float

    def text(self) -> str:
        """`registers 64 -> 96`."""
        scale, unit = (100, " %") if self.unit is Unit.FRACTION else (1, " bytes" if self.unit is Unit.BYTES else "")
        return f"{self.name} {scale * self.base:.10g} -> {scale * self.head:.10g}{unit}"


class Compared(Struct, frozen=True):
    """Two builds side by side. `trouble` says what could not be read; then there may be nothing else."""

    place: str
    base: Side
    head: Side
    causes: tuple[Cause, ...]
    figures: tuple[Figure, ...]
    identical: bool
    """Whether the code is the same but for names and numbers of registers."""
    trouble: tuple[str, ...] = ()

    def classes(self) -> Iterator[tuple[str, int, int]]:
        """Classes of opcodes whose counts differ: class, base's count, head's."""
        yield from _changed((*opcodes.classes(), opcodes.OTHER), self.base.anatomy.classes, self.head.anatomy.classes)

    def opcodes(self) -> Iterator[tuple[str, int, int]]:
        """Opcodes whose counts differ, the largest change first."""
        old, new = self.base.anatomy.opcodes, self.head.anatomy.opcodes
        found = list(_changed(sorted({*old, *new}), old, new))
        yield from sorted(found, key=lambda each: (-abs(each[2] - each[1]), each[0]))

    def notes(self) -> tuple[str, ...]:
        """What a row of the report says: causes first, then figures and what could not be read."""
        same = ("the same machine code",) if self.identical else ()
        return (*same, *(cause.note() for cause in self.causes), *self.trouble)


def _changed(names: Sequence[str], old: dict[str, int], new: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    for name in names:
        if old.get(name, 0) != new.get(name, 0):
            yield name, old.get(name, 0), new.get(name, 0)


class Comparison(Struct, frozen=True):
    """All builds of two folders; `only_base` and `only_head` are places that the other lacks."""

    pairs: tuple[tuple[Specimen, Specimen], ...]
    only_base: tuple[str, ...] = ()
    only_head: tuple[str, ...] = ()


def paired(base: Sequence[Specimen], head: Sequence[Specimen]) -> Comparison:
    """Builds of one folder against each other: those of one file name and symbol first, the others in their order."""
    before, pairs, only_base, only_head = dict(folders(list(base))), [], [], []
    for folder, ours in folders(list(head)):
        theirs = before.pop(folder, [])
        found, old, new = matched(theirs, ours, (_identity, lambda each: (each.place,), _anything))
        pairs += found
        only_base += [each.place for each in old]
        only_head += [each.place for each in new]
    only_base += [each.place for rest in before.values() for each in rest]
    return Comparison(tuple(pairs), tuple(sorted(only_base)), tuple(sorted(only_head)))


def _identity(found: Specimen) -> tuple[str, ...]:
    return found.record.symbol or found.place, found.record.config


def _anything(found: Specimen) -> tuple[str, ...]:
    """Builds of a kernel and case belong together under whatever names; files of which nothing is known don't."""
    return () if found.record.symbol else (found.place,)


def compare(base: Specimen, head: Specimen) -> Compared:
    """Two builds: what differs, and why head may be slower."""
    codes = base.code(), head.code()
    sides = Side(base.record, dissect(codes[0])), Side(head.record, dissect(codes[1]))
    readable = all(codes)
    identical = readable and [each.bare() for each in codes[0]] == [each.bare() for each in codes[1]]
    found = causes.of(*sides) if readable else ()
    return Compared(head.place, *sides, found, tuple(_figures(*sides)), identical, tuple(_troubles(base, head, *sides)))


def _troubles(base: Specimen, head: Specimen, old: Side, new: Side) -> Iterator[str]:
    for name, specimen, side in (("base", base, old), ("head", head, new)):
        why = sass.why_none(specimen.sass)
        if why:
            yield f"{name} has no machine code to compare: {why}"
        elif side.anatomy.unknown > UNKNOWN_SHARE:
            yield f"{name}: {side.anatomy.unknown:.0%} of its instructions are of opcodes that kernelci does not know"


# What a record tells, by tag: the metric's name and unit.
_SIZES = {
    "registers": ("registers", Unit.COUNT),
    "stack_bytes": ("stack", Unit.BYTES),
    "static_shared_bytes": ("static shared memory", Unit.BYTES),
    "dynamic_shared_bytes": ("dynamic shared memory", Unit.BYTES),
    "occupancy": ("occupancy", Unit.FRACTION),
    "barriers": ("barriers", Unit.COUNT),
    "code_bytes": ("code", Unit.BYTES),
}


def _figures(base: Side, head: Side) -> Iterator[Figure]:
    """Numbers that differ."""
    known = None not in (base.record.registers, head.record.registers)  # else the sizes are not either
    for tag, (name, unit) in _SIZES.items() if known else ():
        old, new = getattr(base.record, tag), getattr(head.record, tag)
        if old is not None and new is not None and old != new:
            yield Figure(tag.removesuffix("_bytes"), name, unit, old, new)
    counts = base.anatomy.instructions, head.anatomy.instructions
    if counts[0] != counts[1]:
        yield Figure("instructions", "instructions", Unit.COUNT, *counts)
