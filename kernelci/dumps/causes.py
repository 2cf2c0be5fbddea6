"""Why a build may be slower than another: what differs between them in plain words, the likeliest cause first.

The ranks are judgement, not measurement: what costs a factor stands before what costs a share. A profile knows more.
"""

import math
import re
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from kernelci.dumps import opcodes
from kernelci.dumps.anatomy import Anatomy
from kernelci.dumps.specimen import Record

LEAST = 1.2  # a count that grows by less than this factor is no cause
FEW = 8  # nor is one that grows by fewer than so many
SHARED = 0.8  # shared memory below this share of the base's is less of it


class Way(StrEnum):
    """Which way a difference likely moves the time of head."""

    SLOWER = "likely slower"
    FASTER = "likely faster"
    OTHER = "changed"


class Cause(Struct, frozen=True):
    """One difference in words. `rank`: from 0 to 100, how much it usually costs."""

    way: Way
    rank: float
    text: str

    def note(self) -> str:
        """`likely slower: spills: 0 -> 136 bytes by 96 registers`."""
        return f"{self.way}: {self.text}"


class Side(Struct, frozen=True):
    """One build's record and machine code in numbers."""

    record: Record
    anatomy: Anatomy


def of(base: Side, head: Side) -> tuple[Cause, ...]:
    """All differences that may matter, the gravest first."""
    asked = (_tensor, _shapes, _local, _double, _widths, _copies, _configuration, _shared, _occupancy, _launch, _counts)
    found = [cause for ask in asked for cause in ask(base, head)]
    return tuple(sorted(found, key=lambda cause: -cause.rank))


def _way(worse: bool) -> Way:
    return Way.SLOWER if worse else Way.FASTER


def _tensor(base: Side, head: Side) -> Iterator[Cause]:
    """Another kind of tensor core, or none."""
    old, new = base.anatomy, head.anatomy
    names = [_names(each) for each in (old, new)]
    if old.unit != new.unit:
        what = ": ".join(filter(None, ("tensor cores" if "none" in names else "", f"{names[0]} -> {names[1]}")))
        yield Cause(_way(new.unit < old.unit), 100, what)
    elif names[0] != names[1]:
        yield Cause(Way.OTHER, 90, f"{names[0]} -> {names[1]}")


def _names(found: Anatomy) -> str:
    return "/".join(sorted({name.split(" ")[0] for name in found.multiplications})) or "none"


def _shapes(base: Side, head: Side) -> Iterator[Cause]:
    """Multiplications of the same kind in another shape or of other types."""
    old, new = base.anatomy, head.anatomy
    if not old.unit or old.unit != new.unit or _names(old) != _names(new):
        return
    (type_before, largest), (type_now, largest_now) = _largest(old), _largest(new)
    if type_before != type_now:
        yield Cause(Way.OTHER, 88, f"multiplications of {type_before} -> {type_now}")
    if largest != largest_now:
        worse = _volume(largest_now) < _volume(largest)
        text = f"{_names(new)} {largest} -> {largest_now}"
        yield Cause(_way(worse), 67, f"{text}: a smaller tile" if worse else text)


def _largest(found: Anatomy) -> tuple[str, str]:
    """Types and shape of the largest multiplication."""
    known = [name.split(" ")[1:] for name in found.multiplications]
    shapes = [("".join(part for part in rest if "x" not in part), next(iter(rest), "")) for rest in known]
    return max(shapes, key=lambda each: (_volume(each[1]), each))


def _volume(shape: str) -> int:
    return math.prod(int(part) for part in shape.split("x")) if shape[:1].isdecimal() else 0


def _local(base: Side, head: Side) -> Iterator[Cause]:
    """Spills, and arrays that are in no register."""
    old, new = base.anatomy, head.anatomy
    before, now = base.record, head.record
    if old.spills != new.spills and (max(old.spills, new.spills) > FEW or 0 in (old.spills, new.spills)):
        share = abs(new.spills - old.spills) / max(new.instructions, 1)
        registers = f" by {now.registers} registers" if now.registers else ""
        was = f" (base: {before.registers})" if before.registers and before.registers != now.registers else ""
        sizes = f"{before.stack_bytes} -> {now.stack_bytes} bytes"
        if before.stack_bytes == now.stack_bytes:
            sizes = f"{old.spills} -> {new.spills} loads and stores"
        yield Cause(_way(new.spills > old.spills), 80 + min(18.0, 200 * share), f"spills: {sizes}{registers}{was}")
    if old.arrays != new.arrays:
        text = f"an array in local memory: {old.arrays} -> {new.arrays} accesses"
        yield Cause(_way(new.arrays > old.arrays), 84, text)


def _double(base: Side, head: Side) -> Iterator[Cause]:
    old, new = (side.anatomy.classes.get("double", 0) for side in (base, head))
    if (old == 0) != (new == 0):
        yield Cause(_way(new > old), 86, f"double precision: {old} -> {new} instructions")


_RANKS = {"global load": 76, "global store": 70, "asynchronous copy": 72, "shared load": 55, "shared store": 50}


def _widths(base: Side, head: Side) -> Iterator[Cause]:
    for what, rank in _RANKS.items():
        old, new = base.anatomy.width(what), head.anatomy.width(what)
        if old and new and old != new:
            name = {"asynchronous copy": "asynchronous copies"}.get(what, f"{what}s")
            factor = abs(math.log2(old / new))
            yield Cause(_way(new < old), rank + min(3 * factor, 9), f"{name} {old} -> {new} bits wide")


def _copies(base: Side, head: Side) -> Iterator[Cause]:
    """Copies that don't pass through registers, gained or lost."""
    bulk = [side.anatomy.classes.get("bulk copy", 0) for side in (base, head)]
    if (bulk[0] == 0) != (bulk[1] == 0):
        yield Cause(_way(bulk[1] < bulk[0]), 78, f"bulk copies (TMA): {bulk[0] or 'none'} -> {bulk[1] or 'none'}")
    old, new = (side.anatomy.opcodes.get("LDGSTS", 0) for side in (base, head))
    if (old == 0) != (new == 0) and not any(bulk):  # else the one kind stands in for the other
        yield Cause(_way(new < old), 74, f"asynchronous copies (LDGSTS): {old or 'none'} -> {new or 'none'}")


def _configuration(base: Side, head: Side) -> Iterator[Cause]:
    """Parameters that the source or an autotuner chose: stages first, since a name says nothing of the others."""
    old, new = parameters(base.record), parameters(head.record)
    changed = [key for key in old if key in new and old[key] != new[key]]
    if not changed:
        return
    stages = [key for key in changed if "stage" in key.lower()]
    if stages and old[stages[0]].isdecimal() and new[stages[0]].isdecimal():
        fewer = int(new[stages[0]]) < int(old[stages[0]])
        yield Cause(_way(fewer), 79, f"stages {old[stages[0]]} -> {new[stages[0]]}")
    others = [key for key in changed if key not in stages[:1]]
    if others:
        text = ", ".join(f"{key} {old[key]} -> {new[key]}" for key in others[:6])
        smaller = _product(new, others) < _product(old, others)
        unnamed = others[0].startswith("argument ")  # then what follows from it says more
        yield Cause(Way.SLOWER if smaller else Way.OTHER, 63 if unnamed else 65, text)


def _product(values: dict[str, str], keys: list[str]) -> int:
    return math.prod(int(values[key]) for key in keys if values[key].isdecimal())


_NAMED = re.compile(r"\b([A-Za-z_]\w*)=([\w.+-]+)")
_TEMPLATE = re.compile(r"L[ijlmbx](\d+)E")
_TAIL = re.compile(r"((?:_(?:\d+|True|False))+)(?:_0)?$")


def parameters(record: Record) -> dict[str, str]:
    """A build's constants: those of its configuration by name (Triton), else by number those in its symbol (template
    arguments of C++, and what CuTe DSL puts at a name's end)."""
    named = dict(_NAMED.findall(record.config))
    if named:
        return named
    arguments = _TEMPLATE.findall(record.symbol) if record.symbol.startswith("_Z") else []
    tail = _TAIL.search(record.config) or _TAIL.search(record.symbol)
    if not arguments and tail and "cutlass" in record.symbol:
        arguments = tail[1].strip("_").split("_")
    return {f"argument {number}": value for number, value in enumerate(arguments, 1)}


def _shared(base: Side, head: Side) -> Iterator[Cause]:
    """Less shared memory with the same copies means fewer stages or a smaller tile."""
    old, new = (side.record.static_shared_bytes + side.record.dynamic_shared_bytes for side in (base, head))
    ahead = all({"bulk copy", "asynchronous copy"} & side.anatomy.classes.keys() for side in (base, head))
    if ahead and min(old, new) < SHARED * max(old, new):
        text = f"shared memory {old} -> {new} bytes"
        yield Cause(_way(new < old), 64, f"{text}: fewer stages or a smaller tile" if new < old else text)


def _occupancy(base: Side, head: Side) -> Iterator[Cause]:
    old, new = base.record.occupancy, head.record.occupancy
    if not old or not new or not max(old / new, new / old) >= LEAST:
        return
    why = f", limited by {head.record.limiter}" if new < old and head.record.limiter else ""
    if why.endswith("registers"):
        why += f" ({base.record.registers} -> {head.record.registers})"
    rank = 40 + 15 * min(2.0, abs(math.log2(new / old)))
    yield Cause(_way(new < old), rank, f"occupancy {old:.0%} -> {new:.0%}{why}".replace("%", " %"))


def _launch(base: Side, head: Side) -> Iterator[Cause]:
    for name, old, new in (
        ("threads of a block", base.record.block, head.record.block),
        ("blocks", base.record.grid, head.record.grid),
    ):
        if old and new and math.prod(old) != math.prod(new):
            yield Cause(Way.OTHER, 38, f"{name} {math.prod(old)} -> {math.prod(new)}")


def _counts(base: Side, head: Side) -> Iterator[Cause]:
    """More work by the count of instructions: least certain, since loops count once."""
    old, new = base.anatomy, head.anatomy
    for class_, rank in (("special function", 35), ("barrier", 33)):
        before, now = (side.classes.get(class_, 0) for side in (old, new))
        if _grew(before, now) or _grew(now, before):
            yield Cause(_way(now > before), rank, f"{class_} instructions {before} -> {now}")
    if _grew(old.instructions, new.instructions) or _grew(new.instructions, old.instructions):
        most = max(opcodes.classes(), key=lambda name: _change(old, new, name))
        more = f", most of them {most} ({_change(old, new, most):+d})" if new.instructions > old.instructions else ""
        text = f"instructions {old.instructions} -> {new.instructions}{more}"
        yield Cause(_way(new.instructions > old.instructions), 20, text)


def _grew(before: int, now: int) -> bool:
    return now >= LEAST * before and now - before >= FEW


def _change(old: Anatomy, new: Anatomy, class_: str) -> int:
    return new.classes.get(class_, 0) - old.classes.get(class_, 0)
