"""Records blocks of base against itself and against slower ones: `python benchmarks/record_blocks.py OUT.json`.

Needs a GPU (without one it records what the interpreter takes, which tries the script and says nothing else). Twelve
rows from 2 µs to 2 ms; a set is a fresh process of base and one of head, both the same kernel, and makes a few blocks
of windows A B C D E E D C B A, in an order by lot and as many times as a contest goes A B B A. Head's slower variants
do more work, by exactly that share: a hundredth of the slots is called twice for 0.01. A window of few calls has more
than that, and its time is scaled to the share. Where a contest goes A B B A more than once, since the row runs at the
power limit, every window gets what it gets there: new values in all slots, and a check, so that the GPU works and rests
as it does in a contest. Elsewhere the first window of a set does, and the others get values in a few slots.

All rows get a few blocks, then all get more, until there are enough or the time is up; the file is written after each
row. A file that is there already, of the same GPU, gets these blocks beside its own. benchmarks/blocks_file.py has
its format; benchmarks/verdicts_power.py reads it.
"""

import argparse
import contextlib
import datetime
import math
import random
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parent))

import blocks_file
import do_bench_pairs
from blocks_file import OneBlock, OneWindow, Pairs, Recorded, Recording

from kernelci import catalog, config
from kernelci.court import Court
from kernelci.errors import Stop
from kernelci.ladder import Plan, opened, warm
from kernelci.referee import KernelReferee
from kernelci.reference import Case
from kernelci.workbench import timing
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead, Window, probed_overhead
from kernelci.workbench.contest import Block, Course, at_once, drop, is_noisy
from kernelci.workbench.device import versions
from kernelci.workbench.protocol import Series
from kernelci.workbench.session import Session
from kernelci.workbench.ticks import ticking

ROOT = Path(__file__).resolve().parents[1]
ROWS: dict[str, Sequence[str]] = {
    "softmax/triton": ("64x1024-fp16", "8192x256-fp32", "65536x2048-bf16"),
    "rmsnorm/cuda": ("256x8192-bf16-eps1e-05", "4096x4096-bf16-eps1e-05", "65536x8192-bf16-eps1e-05"),
    "matmul/cutedsl": ("128x512x512-bf16", "2048x6144x4096-bf16", "4096x4096x4096-bf16"),
    "matmul/triton": ("128x512x512-bf16", "16x4096x4096-bf16", "8192x9728x8192-bf16"),
}
SLOWER = ("0.01", "0.02", "0.05")
VARIANTS = ("0", *SLOWER)
SIDES = ("base", *VARIANTS)
# A block's first window, which counts for no side. In the recording of 32 blocks base stood at both ends of a block,
# and by the referee's clock (not by the events) took longer than others by 0.2 to 0.5 % in the mean of the rows.
AWAKE = "awake"
SETS = 5  # whose processes start together, while nothing is measured
FIRST, MOST = 2, 5  # blocks that a set makes of a row: at first, when nobody knows how long they take, and later
SURE = 0.9  # of the time is planned with, so that the last kernels get as much as the first
SOME_SLOTS, SOME_BYTES = 64, 2**28  # that get fresh values before a window of which not all do
# Without a GPU: nothing that anybody should believe.
ON_CPU = Calibration(1e10, Overhead(1e5, 0.9e5, 1.1e5, 1e5, spread=1e4), {"float32": 1.0}, 1e15, {}, 2**12)


class Taken(Struct):
    """A block with the windows in order: side, and seconds since its first."""

    set: int
    block: Block
    order: list[tuple[str, float, Window]]


class Row(Struct):
    """A case while it is recorded, and seconds by what they went into."""

    case: Case
    scouted: timing.Scouted
    taken: list[Taken] = []
    seconds: dict[str, list[float]] = {}
    calls: int = 0
    rounds: int = 1
    do_bench: list[tuple[float, float]] = []


class Recorder:
    """One kernel's rows."""

    def __init__(self, referee: KernelReferee, wanted: Sequence[str]) -> None:
        self.referee = referee
        self.calibration = referee.calibration()
        reference = referee.reference
        self.cases = [case for case in reference.cases() if case.kind == "bench" and (case.id in wanted or not wanted)]
        self.rows: list[Row] = []
        self.probed: list[Window] = []
        self.sets = 0
        self.starting_s, self.block_s = 0.0, 0.0  # of the last batch: for all its sets, and for one block of each

    def scout(self) -> None:
        """Tune, and see about how long calls take; a case that fails is left out. Raises Stop."""
        arena, _ = timing.arena_for(self._device, self.referee.reference, self.cases, self.calibration)
        with contextlib.closing(arena), contextlib.closing(self.referee.open(arena)) as session:
            found = timing.scouted(session, arena, self.referee.reference, self.cases, self.calibration)
        for case, one in zip(self.cases, found, strict=True):
            if isinstance(one, Stop):
                print(f"{self.referee.kernel.name} {case.id} left out: {one.reason}: {one.message}")
            else:
                self.rows.append(Row(case, one))

    @property
    def _device(self) -> str:
        return self.referee.device.torch_name

    def batch(self, sets: int, blocks: int, ends: float, keep: Callable[[], None]) -> None:
        """So many blocks by each of so many new sets of processes, of every row; `keep` after each. Raises Stop."""
        began, taking = time.monotonic(), 0.0
        with contextlib.ExitStack() as stack:
            cases = [row.case for row in self.rows]
            arena, _ = timing.arena_for(self._device, self.referee.reference, cases, self.calibration)
            stack.enter_context(contextlib.closing(arena))
            pairs = [(self.referee.open(arena), self.referee.open(arena)) for _ in range(sets)]
            probe = stack.enter_context(contextlib.closing(self.referee.probe(arena)))
            sessions = [one for pair in pairs for one in pair]
            stack.callback(at_once, Session.close, sessions)
            for row in self.rows:
                seed = secrets.token_hex(8)
                course = timing.course(arena, self.referee.reference, row.case, row.scouted.ns, self.calibration, seed)
                row.calls, row.rounds = course.calls["full"], course.rounds
                prepare(pairs, course, row.scouted.config if row.scouted.config >= 0 else None)
                taken = time.monotonic()
                for number, (base, head) in enumerate(pairs, self.sets):
                    for turn in range(blocks if time.monotonic() < ends else 0):
                        row.taken.append(self._block(number, base, head, course, row, not turn))
                    probe.wake()
                    course.bank.deal(some_slots(course))
                    self.probed.append(probe.sample())
                taking += time.monotonic() - taken
                at_once(Session.forget, sessions)
                keep()
        self.sets += sets
        self.starting_s, self.block_s = time.monotonic() - began - taking, taking / blocks
        for row in self.rows:
            row.seconds.setdefault("starting", []).append(self.starting_s / (2 * sets) / len(self.rows))

    def _block(self, number: int, base: Session, head: Session, course: Course, row: Row, first: bool) -> Taken:
        steps = [("base", base, 0), *((name, head, place) for place, name in enumerate(VARIANTS))]
        random.shuffle(steps)
        order = (*steps, *reversed(steps)) * course.rounds
        made = Taken(number, Block({side: [] for side in SIDES}), [])
        began = time.monotonic()
        with self.referee.watch() as watched:
            for side, session, series in ((AWAKE, *order[0][1:]), *order):
                whole = (first and side == AWAKE) or course.rounds > 1
                window, at = go(session, series, course, row, whole)
                made.block.noisy = made.block.noisy or (whole and is_noisy(window, course))
                window = scaled(window, order[0][0] if side == AWAKE else side)
                made.block.windows.setdefault(side, []).append(window)
                made.order.append((side, at - began, window))
        made.block.state = watched.sampled
        return made

    def recorded(self) -> list[Recorded]:
        """What there is."""
        cost = probed_overhead(self.probed, self.calibration.overhead)
        return [recorded(f"{self.referee.kernel.name} {row.case.id}", row, cost) for row in self.rows if row.taken]


def prepare(pairs: Sequence[tuple[Session, Session]], course: Course, config: int | None) -> None:
    """Get all processes of a row ready at once. Raises Stop."""
    course.bank.deal()
    sides: list[tuple[Session, Sequence[str]]] = [(base, VARIANTS[:1]) for base, _ in pairs]
    sides += [(head, VARIANTS) for _, head in pairs]
    at_once(lambda side: _prepare(*side, course, config), sides)


def _prepare(session: Session, names: Sequence[str], course: Course, config: int | None) -> None:
    layout = course.bank.layout
    for number, name in enumerate(names):
        slots = with_more(course.calls["full"], float(name))
        answer = session.prepare(
            Series(number, layout.call(course.bank.case, config), slots, layout.stride, course.mode)
        )
        if answer.refused:
            raise Stop("refused", f"no graph of it: {answer.refused}")


def go(session: Session, series: int, course: Course, row: Row, whole: bool) -> tuple[Window, float]:
    """A window and when it began; `whole`: new values in all slots, and a check after it, as in a contest. Raises
    Stop."""
    count, bank = course.calls["full"], course.bank
    session.turn(dict(bank.case.values))
    moments = [time.monotonic()]
    bank.deal(count if whole else some_slots(course))
    moments.append(time.monotonic())
    wall, device = session.go(series)
    moments.append(time.monotonic())
    clock_hz = ticking(bank.device)
    if whole:
        bank.check(count)
        moments.append(time.monotonic())
        for name, begin, end in zip(("drawing", "window", "checking"), moments, moments[1:], strict=False):
            row.seconds.setdefault(name, []).append(end - begin)
    return Window(count, float(wall), device, bank.fill_ns, clock_hz()), moments[1]


def some_slots(course: Course) -> int:
    """How many slots get new values where not all do."""
    return max(1, min(course.bank.count, SOME_SLOTS, SOME_BYTES // course.bank.layout.stride))


def scaled(window: Window, side: str) -> Window:
    """The window as if it had just the share of more calls that its side stands for."""
    slower = 0.0 if side == "base" else float(side)
    by = len(with_more(window.calls, slower)) / window.calls / (1 + slower)
    return Window(window.calls, window.wall_ns / by, window.device_ns / by, window.fill_ns, window.sm_clock_hz)


def with_more(count: int, slower: float) -> tuple[int, ...]:
    """The slots of a window with a share of them called twice, evenly spread and half a window apart, so that no second
    call finds its inputs in the L2; at least one, and the time is scaled where a window is too short for the share."""
    extra = math.ceil(count * slower - 1e-9)
    step = count / extra if extra else math.inf
    twice = {int(step * number) for number in range(extra)}
    return tuple(
        slot for one in range(count) for slot in ((one, (one + count // 2) % count) if one in twice else (one,))
    )


def recorded(name: str, row: Row, cost: Overhead) -> Recorded:
    """A row as the file has it."""
    drop([one.block for one in row.taken])
    for one in row.taken:
        if not one.block.dropped and not all(min(map(cost.closest, one.block.windows[side])) > 0 for side in SIDES):
            one.block.dropped = "a window took no longer than the clock itself"
    counting = [one for one in row.taken if not one.block.dropped]

    def pairs(what: str) -> Pairs:
        found = {
            variant: tuple((of(one, "base", what), of(one, variant, what)) for one in counting) for variant in VARIANTS
        }
        return Pairs(found.pop("0"), found)

    def of(one: Taken, side: str, what: str) -> float:
        clock = cost.wall if what.startswith("wall") else cost.closest
        fastest = min(one.block.windows[side], key=clock)
        return fastest.sm_clock_hz if what.endswith("clock") else round(clock(fastest), 3)

    events = pairs("events")
    return Recorded(
        name,
        events.aa,
        events.slower,
        row.calls,
        row.rounds,
        pairs("wall"),
        pairs("clock"),
        pairs("wall_clock"),
        tuple(one.set for one in counting),
        {key: round(sum(values) / len(values), 6) for key, values in row.seconds.items()},
        tuple(row.do_bench),
        {"ns": cost.ns, "low": cost.low, "high": cost.high, "spread": cost.spread},
        tuple(_block_of(one, cost) for one in row.taken),
    )


def _block_of(one: Taken, cost: Overhead) -> OneBlock:
    windows = tuple(
        OneWindow(side, round(at, 4), round(cost.wall(window), 2), round(cost.device(window), 2), window.sm_clock_hz)
        for side, at, window in one.order
    )
    state = msgspec.to_builtins(one.block.state) if one.block.state is not None else {}
    return OneBlock(one.set, windows, state, one.block.dropped)


def more(left: int, seconds: float, recorders: Sequence[Recorder]) -> tuple[int, int]:
    """How many sets the next batch of every kernel has, and blocks each: as many as fit in so many seconds."""
    sets = min(SETS, left)
    if not any(one.block_s for one in recorders):
        return sets, min(FIRST, math.ceil(left / sets)) if sets else 0
    free = SURE * seconds - sum(one.starting_s for one in recorders)
    fit = int(free / max(sum(one.block_s for one in recorders), 1e-9))
    return sets, min(MOST, math.ceil(left / sets), fit) if sets else 0


def run(recorders: list[Recorder], blocks: int, ends: float, out: "Out") -> None:
    """Batch after batch of all kernels; one that fails is left out from then on."""
    done = 0
    while recorders:
        sets, each = more(blocks - done, ends - time.monotonic(), recorders)
        if sets < 1 or each < 1:
            break
        for one in list(recorders):
            try:
                one.batch(sets, each, ends, out.write)
            except Stop as stop:
                print(f"{one.referee.kernel.name} ended: {stop.reason}: {stop.message}")
                recorders.remove(one)
            out.write()
        done += sets * each
        each_s, left_s = sum(one.block_s for one in recorders) / sets, ends - time.monotonic()
        print(f"{done} of {blocks} blocks a row, {each_s:.1f} s each for all rows; {left_s:.0f} s left", flush=True)


class Out:
    """The file, with what was there before."""

    def __init__(self, path: Path, court: Court) -> None:
        """Raises ValueError where the file is of another machine."""
        self._path = path
        self._before = blocks_file.read(path) if path.exists() else None
        self.recorders: tuple[Recorder, ...] = ()
        device, known = court.device, versions(("torch", "triton"))
        parts = (device.name or "no GPU", f"driver {device.driver}" if device.driver else "")
        self._where = ", ".join(filter(None, (*parts, *(f"{name} {version}" for name, version in known.items()))))
        self._began = time.monotonic()
        blocks_file.joined(self._before, self._now())

    def _now(self) -> Recording:
        rows = tuple(row for one in self.recorders for row in one.recorded())
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        return Recording(rows, self._where, date, round(time.monotonic() - self._began, 1))

    def write(self) -> None:
        """What there is now; the file as it was before stays until the new one is whole."""
        draft = self._path.with_name(self._path.name + ".new")
        blocks_file.write(draft, blocks_file.joined(self._before, self._now()))
        draft.replace(self._path)


def begun(court: Court, found: catalog.Catalog, names: Sequence[str]) -> list[KernelReferee]:
    """All kernels, what takes long begun in the background."""
    targets = (court.device.target,) if court.device.is_gpu else ()
    referees = [KernelReferee(kernel, court, targets) for kernel in found.select(tuple(names))]
    for referee in referees:
        referee.start_compiling()
    warm([referee.kernel for referee in referees], court)
    return referees


def scouted(referees: Sequence[KernelReferee], rows: Mapping[str, Sequence[str]]) -> list[Recorder]:
    """All kernels ready to be measured; one that fails is left out."""
    recorders = []
    for referee in referees:
        try:
            recorder = Recorder(referee, rows[referee.kernel.name])
            recorder.scout()
            recorders += [recorder] if recorder.rows else []
        except Stop as stop:
            print(f"{referee.kernel.name} left out: {stop.reason}: {stop.message}")
    return recorders


def main() -> None:
    """Record until there are enough blocks or the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--blocks", type=int, default=60, help="of each row")
    parser.add_argument("--budget", type=float, default=1200.0, help="seconds in all")
    parser.add_argument("--project", type=Path, default=ROOT, help="another project: all bench cases of its kernels")
    arguments = parser.parse_args()
    ends = time.monotonic() + arguments.budget
    options = config.load(arguments.project)
    found = catalog.scan(arguments.project, options)
    rows: dict[str, Sequence[str]] = (
        ROWS if arguments.project == ROOT else {kernel.name: () for kernel in found.kernels}
    )
    with opened(found, options, Plan(found.kernels, arguments.project / options.out, ("benchmark",))) as court:
        if not court.device.is_gpu:
            print("no GPU: this tries the script, and measures nothing that counts")
            court.calibration = ON_CPU
        out = Out(arguments.out, court)
        referees = begun(court, found, tuple(rows))
        medians = do_bench_pairs.taken(found, rows, court.builder.settle) if court.device.is_gpu else {}
        court.builder.settle()
        recorders = scouted(referees, rows)
        out.recorders = tuple(recorders)
        for recorder in recorders:
            for row in recorder.rows:
                row.do_bench = medians.get(f"{recorder.referee.kernel.name} {row.case.id}", [])
        print(f"ready, {ends - time.monotonic():.0f} s left", flush=True)
        run(recorders, arguments.blocks, ends, out)


if __name__ == "__main__":
    main()
