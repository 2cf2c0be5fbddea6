"""Two traces of one case, base and head: in which regions a warp spends more or less time."""

from collections.abc import Iterator

from kernelci import units
from kernelci.model import Unit
from kernelci.tracing.regions import GAP
from kernelci.tracing.table import Table

LEAST = 0.02  # of a warp's life in base: less is not told


def changes(base: Table, head: Table) -> list[str]:
    """What differs, the largest change first: time of a warp in each region, and whether copying is hidden."""
    lives = base.lifetime_ns / base.warps if base.warps else 0.0
    found = [(now - before, name, before, now) for name, before, now in _times(base, head)]
    found = [each for each in found if lives and abs(each[0]) / lives > LEAST]
    found.sort(key=lambda each: -abs(each[0]))
    told = [f"{name or 'between regions'} {_ns(before)} -> {_ns(now)} a warp" for _, name, before, now in found]
    if base.overlap is not None and head.overlap is not None and abs(head.overlap - base.overlap) > LEAST:
        ends = (units.value(each, Unit.FRACTION) for each in (base.overlap, head.overlap))
        told.append("overlap of copying and computing {} -> {}".format(*ends))
    return told


def _times(base: Table, head: Table) -> Iterator[tuple[str, float, float]]:
    names = dict.fromkeys(line.name for table in (base, head) for line in table.lines)
    for name in sorted(names, key=lambda each: each == GAP):
        yield name, _of_a_warp(base, name), _of_a_warp(head, name)


def _of_a_warp(table: Table, name: str) -> float:
    line = table.line(name)
    return line.time_ns / table.warps if line is not None and table.warps else 0.0


def _ns(time_ns: float) -> str:
    return units.value(time_ns, Unit.NANOSECONDS)
