"""A contest: fresh processes of one side or of two, on the same slots of one arena, measured by turns.

The unit of evidence is a block: a process of each side that did nothing else before, windows in the order A B B A.
Processes of a few blocks start together, while nothing is measured; then one is active at a time.
"""

import contextlib
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from kernelci import stats
from kernelci.errors import Stop
from kernelci.workbench import nvml
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import Probe
from kernelci.workbench.clock import Overhead, Window, off_line, probed_overhead
from kernelci.workbench.protocol import Series
from kernelci.workbench.series import Mode
from kernelci.workbench.session import Session
from kernelci.workbench.slots import Bank
from kernelci.workbench.spent import Spent
from kernelci.workbench.ticks import ticking

Kind = Literal["full", "short", "solo", "warm", "each"]
"""Of a window: docs/benchmark.md says what each is for."""
KINDS: tuple[Kind, ...] = get_args(Kind)
SHORTER: tuple[Kind, ...] = ("short", "solo")  # that must lie on one line with the full ones
Opener = Callable[[Arena], Session]
COPIED = "the copy of its result is in the time"
EACH_CALLS = 32  # of a window that waits for the device after each call
REPEATS = 3  # of a short window that does not fit the others
STARTS = 32  # processes that start or end at once: all of a contest, as a rule
Watch = Callable[[], nvml.Watch]
Item = TypeVar("Item")
QUIET_FACTOR, QUIET_NS = 1.5, 2e6  # a fill that takes longer than usual by this much was disturbed


class Course(Struct):
    """One case as it is measured: its slots, and how many calls each kind of window has."""

    bank: Bank
    calls: dict[Kind, int]
    mode: Mode = "graph"
    usual_fill_ns: float = 0.0
    why_eager: str = ""
    copied: dict[str, str] = {}
    """The sides whose results are copied while the clock runs, and why."""
    rounds: int = 1
    """How often a block goes A B B A."""


class Block(Struct):
    """The windows of one block by side, for one case; `dropped` says why it doesn't count."""

    windows: dict[str, list[Window]]
    dropped: str = ""
    state: nvml.Sampled | None = None
    noisy: bool = False


class Contestant:
    """One process of a side, with its series ready."""

    def __init__(self, side: str, session: Session, block: int = 0, full_only: bool = False) -> None:
        self.side = side
        self.session = session
        self._block = block
        self._full_only = full_only or side != _owner(side)
        self._ready: dict[int, tuple[int, int | None]] = {}
        self.choice = ""  # of its autotuner, in words

    def kinds(self, course: Course) -> list[Kind]:
        """The windows that it makes: all in the first of a few blocks, and base against base only full ones."""
        if self._full_only:
            return ["full"]
        return [kind for kind in course.calls if not self._block or kind in ("full", "each")]

    def prepare(self, number: int, course: Course, kind: Kind, config: int | None) -> int:
        """Get one kind of window ready; the autotuner's choice. A graph that is refused makes the course eager."""
        mode = "each" if kind == "each" else course.mode
        layout = course.bank.layout
        call = layout.call(course.bank.case, config)
        calls = course.calls[kind]
        series = Series(number, call, tuple(range(calls)), layout.stride, mode, course.bank.workspace(calls))
        answer = self.session.prepare(series)
        if answer.refused:
            course.mode, course.why_eager = "eager", answer.refused
            answer = self.session.prepare(replace(series, mode="eager"))
        course.bank.require(answer.spots, calls)
        if answer.copied:
            course.copied[self.side] = answer.copied
        self._ready[number] = (self.session.life, config)
        self.choice = " ".join(answer.choice.split())
        return int(answer.config)

    def go(self, number: int, course: Course, kind: Kind, spent: Spent) -> Window:
        """Fresh values, the window, a check of every slot it should have written. Raises Stop."""
        calls, bank = course.calls[kind], course.bank
        life, config = self._ready.get(number, (self.session.life, None))  # another contestant may have prepared it
        if life != self.session.life:  # the process that was ready died of another case
            bank.deal()
            self.prepare(number, course, kind, config)
        with spent.during("readying"):
            self.session.turn(dict(bank.case.values))
        with spent.during("drawing"):
            bank.deal(calls, self.session.spots(number))
        wall, device = self.session.go(number)
        spent.add("windows", wall / 1e9)
        clock_hz = ticking(bank.device if kind == "full" else "cpu")
        with spent.during("checking"):
            bank.check(calls, self.session.spots(number))
        return Window(calls, float(wall), device, bank.fill_ns, clock_hz())


class Contest:
    """All courses, run by one side or by several. `configs` pins each side's autotuners once they have chosen."""

    def __init__(
        self,
        arena: Arena,
        sides: Mapping[str, Opener],
        courses: Sequence[Course],
        seed: str,
        probe: Callable[[Arena], Probe],
        probed: list[Window],
        overhead: Overhead,
    ) -> None:
        """`probe` gives the one on this arena, which outlives the contest; `probed` takes its windows. `overhead` is
        the calibrated one."""
        self._arena = arena
        self._probe = probe
        self.probed = probed
        self._overhead = overhead
        self._sides = dict(sides)
        self.courses = list(courses)
        self._random = random.Random(f"{seed}/contest")
        self.configs: dict[tuple[str, int], int] = {}
        self.blocks: list[list[Block]] = [[] for _ in courses]
        self.faults: dict[tuple[str, int], Stop] = {}
        self.resting: set[int] = set()
        """The places of the courses that get no more blocks."""
        self.spent = Spent()

    def number(self, index: int, kind: Kind) -> int:
        """The number of a series."""
        return index * len(KINDS) + KINDS.index(kind)

    def batch(self, sides: Sequence[str], blocks: int, watch: Watch, full_only: bool = False) -> None:
        """So many more blocks of every course that neither rests nor has a fault, each with fresh processes; with
        `full_only` of full windows alone."""
        rows = [
            [Contestant(side, self._sides[_owner(side)](self._arena), number, full_only) for side in sides]
            for number in range(blocks)
        ]
        those = [one for row in rows for one in row]
        try:
            with self.spent.during("starting"):
                probe = self._start(those)
            with self.spent.during("readying"):
                for index, course in self._active():
                    self._prepare(those, index, course)
            for index, course in self._active():
                before = len(self.blocks[index])
                for row in rows:
                    if not self._faulty(index, sides):
                        self.blocks[index].append(self._block(row, index, course, watch, probe))
                if not self._faulty(index, sides):
                    self._repeat(rows[0], index, course, self.blocks[index][before])
        finally:
            with self.spent.during("ending"):
                at_once(Session.close, [one.session for one in those])

    def _active(self) -> Iterator[tuple[int, Course]]:
        return ((index, course) for index, course in enumerate(self.courses) if index not in self.resting)

    def _start(self, those: Sequence[Contestant]) -> Probe:
        """All processes at the same time: the probe's, unless it is there, and theirs."""
        with ThreadPoolExecutor(1, thread_name_prefix="probe") as thread:
            probe = thread.submit(self._probe, self._arena)
            at_once(started, [one.session for one in those])
            return probe.result()

    def _faulty(self, index: int, sides: Iterable[str]) -> bool:
        return any((_owner(side), index) in self.faults for side in sides)

    def _prepare(self, those: Sequence[Contestant], index: int, course: Course) -> None:
        """All processes get a course ready at the same time, on slots that hold valid values; one after another where
        the arena serves what calls allocate, since one's indices would lie where another writes.

        Where a graph is refused that others were given, all get ready once more without one, and what was measured so
        far does not count: a side must not choose that the other goes without.
        """
        course.bank.deal()

        def one(contestant: Contestant) -> None:
            owner = _owner(contestant.side)
            if (owner, index) in self.faults:
                return
            try:
                for kind in contestant.kinds(course):
                    config = self.configs.get((owner, index))
                    chosen = contestant.prepare(self.number(index, kind), course, kind, config)
                    if config is None and chosen >= 0:
                        self.configs[owner, index] = chosen
            except Stop as stop:
                self.faults[owner, index] = stop

        together = 1 if any(course.bank.workspace(calls) for calls in course.calls.values()) else STARTS
        mode = course.mode
        at_once(one, those, together)
        if course.mode != mode:
            self.blocks[index].clear()
            at_once(one, those, together)

    def _block(self, row: Sequence[Contestant], index: int, course: Course, watch: Watch, probe: Probe) -> Block:
        """Other kinds of windows once each; A B B A, or B A A B: every side's full windows; and one of the probe.

        On an H200 the side that stood at a block's ends took 0.2 to 0.5 % longer by the referee's clock, most likely
        since a first window finds the machine asleep: so it is no full one where there are others, and no side always
        stands at the ends.
        """
        order = list(row)
        self._random.shuffle(order)
        block = Block({one.side: [] for one in row})
        steps: list[tuple[Contestant, Kind]] = [(one, "full") for one in (*order, *reversed(order)) * course.rounds]
        others = [(one, kind) for one in order for kind in one.kinds(course) if kind != "full"]
        self._random.shuffle(others)
        began = time.monotonic()
        with watch() as watched:
            self.spent.add("probing", time.monotonic() - began)
            for one, kind in (*others, *steps):
                window = self._went(one, index, course, kind)
                if window is None:
                    return block
                block.windows.setdefault(named(one.side, kind), []).append(window)
                block.noisy = block.noisy or (kind == "full" and is_noisy(window, course))
            began = time.monotonic()
            probe.wake()  # as the sides' full windows come behind others
            course.bank.deal()
            self.probed.append(probe.sample())
        self.spent.add("probing", time.monotonic() - began)
        block.state = watched.sampled
        return block

    def _repeat(self, row: Sequence[Contestant], index: int, course: Course, block: Block) -> None:
        """Short windows that don't fit once more: a host that was busy for a moment must not make a measurement
        doubtful, and who is slow in them on purpose is so again. The last one counts.

        With so few windows the line is unsure and would let much pass that later ones make a misfit: so it is tight.
        """
        cost = probed_overhead(self.probed, self._overhead)
        for one, kind in [(each, kind) for each in row for kind in each.kinds(course) if kind in SHORTER]:
            full = [window for made in self.blocks[index] for window in made.windows.get(one.side, ())]
            name = named(one.side, kind)
            for _ in range(REPEATS):
                if not any(off_line(full, block.windows[name], cost, tight=True)):
                    break
                window = self._went(one, index, course, kind)
                if window is None:
                    return
                block.windows[name] = [window]

    def _went(self, one: Contestant, index: int, course: Course, kind: Kind) -> Window | None:
        """A window; None where it is a fault of its side, which is kept."""
        try:
            return one.go(self.number(index, kind), course, kind, self.spent)
        except Stop as stop:
            self.faults[_owner(one.side), index] = stop
            return None


class Spares:
    """Opens sessions of a side. The first few start together when the first of them is asked for; the others wait."""

    def __init__(self, opened: Opener, count: int) -> None:
        self._opened = opened
        self._count = count
        self._left: list[Session] = []

    def __call__(self, arena: Arena) -> Session:
        """A session that nobody has used."""
        if self._count:
            self._left = [self._opened(arena) for _ in range(self._count)]
            self._count = 0
            at_once(started, self._left)
        return self._left.pop() if self._left else self._opened(arena)

    def close(self) -> None:
        """End those that nobody has asked for."""
        at_once(Session.close, self._left)


def started(session: Session) -> None:
    """Start its process; a fault is met again where it is asked for a window, so that it ends that case alone."""
    with contextlib.suppress(Stop):
        session.start()


def at_once(what: Callable[[Item], None], those: Sequence[Item], together: int = STARTS) -> None:
    """The same with all of them at the same time, or so many; raises what it raises, when all are through."""
    with ThreadPoolExecutor(together, thread_name_prefix="contest") as threads:
        list(threads.map(what, those))


def is_noisy(window: Window, course: Course) -> bool:
    """Whether the referee's fill was slower than usual just before a full window: somebody else computed there."""
    usual = course.usual_fill_ns
    return bool(usual) and window.fill_ns > QUIET_FACTOR * usual + QUIET_NS


def named(side: str, kind: Kind) -> str:
    """What a side's windows of a kind are called in a block: "head", "head.short"."""
    return side if kind == "full" else f"{side}.{kind}"


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
    """One figure per block that counts: the fastest of its windows, since what disturbs one only makes it slower.

    By the mean, two base processes differed by up to 3 % in a block of matmuls at the power limit of an H200; by the
    fastest of two windows by up to 0.25 %.
    """
    found = [[cost(window) for window in block.windows.get(side, ())] for block in blocks if not block.dropped]
    return [min(times) for times in found if times]


def fastest(
    blocks: Sequence[Block], base: str, head: str, cost: Callable[[Window], float]
) -> list[tuple[Window, Window]]:
    """The fastest window of both sides of each block that counts; not of one in which a side took no longer than the
    clock itself."""
    found = []
    for block in blocks:
        one, other = (min(block.windows.get(side, ()), key=cost, default=None) for side in (base, head))
        if not block.dropped and one is not None and other is not None and min(cost(one), cost(other)) > 0:
            found.append((one, other))
    return found


def log_ratios(blocks: Sequence[Block], base: str, head: str, cost: Callable[[Window], float]) -> tuple[float, ...]:
    """ln(head / base) of each block that counts; none of one in which a side took no longer than the clock itself."""
    pairs = fastest(blocks, base, head, cost)
    return stats.paired([cost(one) for one, _ in pairs], [cost(other) for _, other in pairs])
