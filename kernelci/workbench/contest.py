"""A contest: fresh processes of one side or of two, on the same slots of one arena, measured by turns.

The unit of evidence is a block: a process of each side that did nothing else before, windows in the order A B B A.
Processes of a few blocks start together, while nothing is measured; then one is active at a time.
"""

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from msgspec import Struct

from kernelci import stats
from kernelci.errors import Verdict
from kernelci.workbench import nvml
from kernelci.workbench.arena import Arena
from kernelci.workbench.clock import Window
from kernelci.workbench.protocol import Series
from kernelci.workbench.session import Session
from kernelci.workbench.slots import Bank

Kind = Literal["full", "short", "solo", "warm", "each"]
Opener = Callable[[Arena], Session]
EACH_CALLS = 32  # of a window that waits for the device after each call
STARTS = 8  # processes that start at once
Watch = Callable[[], nvml.Watch]
QUIET_FACTOR, QUIET_NS = 1.5, 2e6  # a fill that takes longer than usual by this much was disturbed


class Course(Struct):
    """One case as it is measured: its slots, and how many calls each kind of window has."""

    bank: Bank
    calls: dict[Kind, int]
    mode: Literal["graph", "eager"] = "graph"
    usual_fill_ns: float = 0.0
    why_eager: str = ""


class Block(Struct):
    """The windows of one block by side, for one case; `dropped` says why it doesn't count."""

    windows: dict[str, list[Window]]
    dropped: str = ""
    state: nvml.Sampled | None = None
    noisy: bool = False


class Contestant:
    """One process of a side, with its series ready."""

    def __init__(self, side: str, session: Session) -> None:
        self.side = side
        self.session = session

    def prepare(self, number: int, course: Course, kind: Kind, config: int | None) -> int:
        """Get one kind of window ready; the autotuner's choice. A graph that is refused makes the course eager."""
        mode = "each" if kind == "each" else course.mode
        layout = course.bank.layout
        call = layout.call(course.bank.case, config)
        series = Series(number, call, tuple(range(course.calls[kind])), layout.stride, mode)
        answer = self.session.prepare(series)
        if answer.refused:
            course.mode, course.why_eager = "eager", answer.refused
            answer = self.session.prepare(Series(number, call, series.slots, layout.stride, "eager"))
        return int(answer.config)

    def go(self, number: int, course: Course, kind: Kind) -> Window:
        """Fresh values, the window, a check of every slot it should have written. Raises Verdict."""
        course.bank.deal()
        wall, device = self.session.go(number)
        course.bank.check(course.calls[kind])
        return Window(course.calls[kind], float(wall), device, course.bank.fill_ns)


class Contest:
    """All courses, run by one side or by several. `configs` pins each side's autotuners once they have chosen."""

    def __init__(self, arena: Arena, sides: Mapping[str, Opener], courses: Sequence[Course], seed: str) -> None:
        self._arena = arena
        self._sides = dict(sides)
        self.courses = list(courses)
        self._random = random.Random(f"{seed}/contest")
        self.configs: dict[tuple[str, int], int] = {}
        self.blocks: list[list[Block]] = [[] for _ in courses]
        self.alone: dict[tuple[str, int], list[Window]] = {}
        self.faults: dict[tuple[str, int], Verdict] = {}

    def number(self, index: int, kind: Kind) -> int:
        """The number of a series."""
        kinds: tuple[Kind, ...] = ("full", "short", "solo", "warm", "each")
        return index * len(kinds) + kinds.index(kind)

    def batch(self, sides: Sequence[str], blocks: int, kinds: Iterable[Kind], watch: Watch) -> None:
        """So many more blocks of every course that has no fault, each with fresh processes."""
        kinds = tuple(kinds)
        rows = [[Contestant(side, self._sides[_owner(side)](self._arena)) for side in sides] for _ in range(blocks)]
        try:
            for index, course in enumerate(self.courses):
                self._prepare([one for row in rows for one in row], index, course, kinds)
            for index, course in enumerate(self.courses):
                for number, row in enumerate(rows):
                    if not self._faulty(index, sides):
                        self.blocks[index].append(
                            self._block(row, index, course, kinds if not number else ("full", "each"), watch)
                        )
        finally:
            for row in rows:
                for one in row:
                    one.session.close()

    def _faulty(self, index: int, sides: Iterable[str]) -> bool:
        return any((_owner(side), index) in self.faults for side in sides)

    def _prepare(self, those: Sequence[Contestant], index: int, course: Course, kinds: Sequence[Kind]) -> None:
        """All processes get a course ready at the same time, on slots that hold valid values."""
        course.bank.deal()

        def one(contestant: Contestant) -> None:
            owner = _owner(contestant.side)
            if (owner, index) in self.faults:
                return
            try:
                for kind in _of(course, kinds):
                    config = self.configs.get((owner, index))
                    chosen = contestant.prepare(self.number(index, kind), course, kind, config)
                    if config is None and chosen >= 0:
                        self.configs[owner, index] = chosen
            except Verdict as verdict:
                self.faults[owner, index] = verdict

        with ThreadPoolExecutor(STARTS, thread_name_prefix="prepare") as threads:
            list(threads.map(one, those))

    def _block(
        self,
        row: Sequence[Contestant],
        index: int,
        course: Course,
        kinds: Sequence[Kind],
        watch: Watch,
    ) -> Block:
        """A B B A, or B A A B: every side's full windows; other kinds once each."""
        order = list(row) if self._random.random() < 0.5 else list(reversed(row))
        block = Block({one.side: [] for one in row})
        steps: list[tuple[Contestant, Kind]] = [(one, "full") for one in (*order, *reversed(order))]
        others = [(one, kind) for one in order for kind in _of(course, kinds) if kind != "full"]
        self._random.shuffle(others)
        with watch() as watched:
            for one, kind in (*steps, *others):
                try:
                    window = one.go(self.number(index, kind), course, kind)
                except Verdict as verdict:
                    self.faults[_owner(one.side), index] = verdict
                    return block
                block.windows.setdefault(one.side if kind == "full" else f"{one.side}.{kind}", []).append(window)
                block.noisy = block.noisy or is_noisy(window, course)
        block.state = watched.sampled
        return block


def is_noisy(window: Window, course: Course) -> bool:
    """Whether the referee's own kernels were slower than usual just before a window: somebody else computed there."""
    return bool(course.usual_fill_ns) and window.fill_ns > QUIET_FACTOR * course.usual_fill_ns + QUIET_NS


def _of(course: Course, kinds: Sequence[Kind]) -> list[Kind]:
    return [kind for kind in kinds if kind in course.calls]


def _owner(side: str) -> str:
    """A second process of a side, for base against base, is named with a prime."""
    return side.rstrip("'")


def drop(blocks: Sequence[Block]) -> None:
    """Say of each block why it does not count, by the state of the GPU during it and during the others."""
    clocks = [block.state.sm_clock_hz for block in blocks if block.state and block.state.sm_clock_hz]
    usual = statistics.median(clocks) if clocks else None
    for block in blocks:
        block.dropped = nvml.why_dropped(block.state, usual) if block.state is not None else ""
        if block.noisy and not block.dropped:
            block.dropped = "something else computed on the GPU between windows"


def per_call(blocks: Sequence[Block], side: str, cost: Callable[[Window], float]) -> list[float]:
    """One figure per block that counts: the mean over its windows."""
    found = [[cost(window) for window in block.windows.get(side, ())] for block in blocks if not block.dropped]
    return [sum(times) / len(times) for times in found if times]


def log_ratios(blocks: Sequence[Block], base: str, head: str, cost: Callable[[Window], float]) -> tuple[float, ...]:
    """ln(head / base) of each block that counts."""
    both = [block for block in blocks if not block.dropped and block.windows.get(base) and block.windows.get(head)]
    return stats.paired(per_call(both, base, cost), per_call(both, head, cost))
