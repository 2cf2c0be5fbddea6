"""What benchmarks/record_blocks.py writes and others read: blocks of base against itself and against slower ones.

Times in ns a call, clocks in Hz, all else in SI units. Each pair is [base, head], by the fastest window of each in one
block; all lists of pairs of a row, and `sets`, are as long and in the same order. Blocks that don't count are in
`blocks` alone, with the reason.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

Pair = tuple[float, float]


class Pairs(Struct, frozen=True):
    """Of base against base, and of each slowdown."""

    aa: tuple[Pair, ...] = ()
    slower: dict[str, tuple[Pair, ...]] = {}

    def of(self, slowdown: str) -> tuple[Pair, ...]:
        """Those of a slowdown; "0": of base against base."""
        return self.slower[slowdown] if slowdown != "0" else self.aa


class OneWindow(Struct, frozen=True, array_like=True):
    """Which side ("base", "0", "0.01"), seconds since the block began, ns a call by the referee's clock and by the
    candidate's events, and the SM clock that NVML showed meanwhile (0: not seen)."""

    side: str
    at_s: float
    wall_ns: float
    device_ns: float
    sm_clock_hz: float = 0.0


class OneBlock(Struct, frozen=True):
    """Every window of a block in order, the processes that made it (a number), and the GPU's state meanwhile."""

    set: int
    windows: tuple[OneWindow, ...]
    state: dict[str, Any] = {}
    dropped: str = ""


class Recorded(Struct, frozen=True):
    """One row, by the candidates' events (`aa`, `slower`) and by the referee's clock; their windows' SM clocks."""

    row: str
    aa: tuple[Pair, ...]
    slower: dict[str, tuple[Pair, ...]]
    calls: int = 0
    rounds: int = 1
    wall: Pairs = Pairs()
    clock: Pairs = Pairs()
    wall_clock: Pairs = Pairs()
    sets: tuple[int, ...] = ()
    seconds: dict[str, float] = {}
    """Of one window, of drawing for it, of checking it, and of starting a process (its share of the kernel's)."""
    do_bench: tuple[Pair, ...] = ()
    """Medians of triton.testing.do_bench one after the other, of equal sides, ns."""
    overhead: dict[str, float] = {}
    """Of a window beside its calls, ns, by the probe: its interval, and the standard deviation of one window."""
    blocks: tuple[OneBlock, ...] = ()

    @property
    def events(self) -> Pairs:
        """By the candidates' events."""
        return Pairs(self.aa, self.slower)


class Recording(Struct, frozen=True):
    """The file."""

    rows: tuple[Recorded, ...]
    where: str = ""
    date: str = ""
    seconds: float = 0.0
    """What recording took."""


def read(path: Path) -> Recording:
    """A recording. Raises msgspec.ValidationError."""
    return msgspec.convert(json.loads(path.read_text(encoding="utf-8")), Recording)


def write(path: Path, recording: Recording) -> None:
    """One row a line."""
    document = msgspec.to_builtins(recording)
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in document.pop("rows"))
    rest = json.dumps(document)[1:-1]
    path.write_text(f'{{{rest}, "rows": [\n{rows}\n]}}\n', encoding="utf-8")


def joined(before: Recording | None, now: Recording) -> Recording:
    """A recording and one more of the same GPU. Raises ValueError where the machine is another."""
    if before is None:
        return now
    if before.where != now.where:
        raise ValueError(f"the file is of {before.where}, and this is {now.where}: name another file")
    old = {row.row: row for row in before.rows}
    new = {row.row: row for row in now.rows}
    rows = [_both(row, new[name]) if name in new else row for name, row in old.items()]
    rows += [row for name, row in new.items() if name not in old]
    return replace(now, rows=tuple(rows), seconds=before.seconds + now.seconds)


def _both(old: Recorded, new: Recorded) -> Recorded:
    first = 1 + max((block.set for block in old.blocks), default=-1)
    return replace(
        new,
        aa=(*old.aa, *new.aa),
        slower={name: (*old.slower.get(name, ()), *pairs) for name, pairs in new.slower.items()},
        wall=_pairs(old.wall, new.wall),
        clock=_pairs(old.clock, new.clock),
        wall_clock=_pairs(old.wall_clock, new.wall_clock),
        sets=(*old.sets, *(first + each for each in new.sets)),
        do_bench=(*old.do_bench, *new.do_bench),
        blocks=(*old.blocks, *(replace(block, set=first + block.set) for block in new.blocks)),
    )


def _pairs(old: Pairs, new: Pairs) -> Pairs:
    slower = {name: (*old.slower.get(name, ()), *pairs) for name, pairs in new.slower.items()}
    return Pairs((*old.aa, *new.aa), slower)
