"""One kernel's cases measured from the first process to the last block: head alone, or base against head.

Order: a scout of the base alone, a scout of the head, a block of base alone by its scout, then contests of a few blocks
each until every row has an answer or the budget is spent, a second contest of the rows that differ, and last the base
alone once more.
"""

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kernelci import stats
from kernelci.errors import Stop
from kernelci.reference import Case, Reference
from kernelci.workbench import audit, timing
from kernelci.workbench.arena import Arena
from kernelci.workbench.audit import Auditor, TimedCase
from kernelci.workbench.calibration import Calibration, Probe
from kernelci.workbench.clock import Overhead, Window, probed_overhead
from kernelci.workbench.contest import Block, Contest, Course, Opener, Spares, Watch, drop, per_call
from kernelci.workbench.ledger import Audited
from kernelci.workbench.session import Session
from kernelci.workbench.spent import Spent

BLOCKS_ALONE = 3
ALONE_FIRST = 1  # blocks of base before head comes
PAIR, ALONE = ("base", "head"), ("head",)
# Base is slower beside head than alone by more than this: so many spreads of its own blocks, but at least and at most
# these shares. docs/benchmark.md has what they rest on.
SPREADS, LEAST_DISTURBED, DISTURBED = 4.0, 0.01, 0.1
LEAST_SPREAD = 4  # blocks whose spread says something


Scouts = Mapping[str, Sequence["timing.Scouted | Stop"]]


class Measured(Struct):
    """What a duel left for one case: its course and blocks, or the stop that ended it for a side."""

    case: Case
    course: Course | None
    blocks: list[Block]
    head_fault: Stop | None = None
    base_fault: Stop | None = None
    alone: list[Block] = []
    """Base's blocks while no process of head was there."""
    choices: dict[str, str] = {}
    """What each side's autotuner took, in words."""
    again: list[Block] = []
    """The second contest, of a row that differs in the first."""
    audited: Audited | None = None


class Result(Struct):
    """All cases of a kernel, what the clock itself cost meanwhile, notes, and what the time went into."""

    cases: list[Measured]
    overhead: Overhead
    notes: list[str]
    spent: Spent


Undecided = Callable[[list[Measured], Overhead], list[Measured]]
Differs = Callable[[Measured, Overhead], bool]


class Means(Struct):
    """What a duel is fought with: how candidates of each side start ("head", and perhaps "base"), and a probe; how the
    GPU is watched; what says, after each contest, which rows need more blocks; what audits head; and which rows are to
    be measured once again."""

    device: str
    sides: Mapping[str, Opener]
    probe: Callable[[Arena], Probe]
    watch: Watch
    undecided: Undecided
    seed: str
    auditor: Auditor
    returns: bool = False
    differs: Differs = lambda one, cost: False


def run(means: Means, reference: Reference, cases: Sequence[Case], calibration: Calibration) -> Result:
    """Measure all cases. Raises Stop for what concerns all of them."""
    result = Result([], calibration.overhead, [], Spent())
    began = time.monotonic()
    arena, note = timing.arena_for(means.device, reference, cases, calibration, means.returns)
    result.notes += [note] if note else []
    with contextlib.ExitStack() as to_close:
        to_close.callback(arena.close)
        means = _with_one_probe(means, to_close)
        means, scouts = _scouted(means, arena, reference, cases, calibration, to_close)
        result.cases = [
            _measured(arena, reference, case, index, scouts, calibration, means.seed)
            for index, case in enumerate(cases)
        ]
        result.spent.add("setting_up", time.monotonic() - began)
        _contest(means, arena, result, scouts)
        with result.spent.during("auditing"):
            _audit(means, arena, result, scouts)
    return result


def _with_one_probe(means: Means, to_close: contextlib.ExitStack) -> Means:
    """The same means with one probe for all contests, started when the first of them asks for it."""
    made: list[Probe] = []

    def probe(arena: Arena) -> Probe:
        if not made:
            made.append(means.probe(arena))
            to_close.callback(made[0].close)
        return made[0]

    return replace(means, probe=probe)


def _scouted(
    means: Means,
    arena: Arena,
    reference: Reference,
    cases: Sequence[Case],
    calibration: Calibration,
    to_close: contextlib.ExitStack,
) -> tuple[Means, Scouts]:
    """What each side's scout found: the base first, while no process of head has run.

    Base's scout then makes its block alone too, in the means that are returned. Without a base the processes of head's
    contest start together with its scout.
    """
    if "base" not in means.sides:
        spares = Spares(means.sides["head"], 1 + BLOCKS_ALONE)
        to_close.callback(spares.close)
        means = replace(means, sides={"head": spares})
    found: dict[str, Sequence[timing.Scouted | Stop]] = {}
    sides = dict(means.sides)
    for side in sorted(means.sides):
        session = means.sides[side](arena)
        to_close.callback(session.close)
        found[side] = timing.scouted(session, arena, reference, cases, calibration)
        if side == "base":
            sides[side] = _beginning_with(session, means.sides[side])
        else:
            session.close()
    return replace(means, sides=sides), found


def _beginning_with(session: Session, opened: Opener) -> Opener:
    """Opens sessions of a side; the first is one that is there already."""
    there = [session]
    return lambda arena: there.pop() if there else opened(arena)


def _measured(
    arena: Arena,
    reference: Reference,
    case: Case,
    index: int,
    scouts: Scouts,
    calibration: Calibration,
    seed: str,
) -> Measured:
    """A case with its course, by the slower side's time; without one where head fails."""
    head, base = scouts["head"][index], scouts["base"][index] if "base" in scouts else None
    one = Measured(case, None, [])
    one.head_fault = head if isinstance(head, Stop) else None
    one.base_fault = base if isinstance(base, Stop) else None
    one.choices = {
        name: side.choice for name, side in (("head", head), ("base", base)) if isinstance(side, timing.Scouted)
    }
    times = [side.ns for side in (head, base) if isinstance(side, timing.Scouted)]
    if one.head_fault is None:
        one.course = timing.course(arena, reference, case, max(times), calibration, seed)
        sides = (("head", head), ("base", base))
        why = "; ".join(f"{name}: {_why_eager(side)}" for name, side in sides if _why_eager(side))
        if why:  # then both sides go without a graph
            one.course.mode, one.course.why_eager = "eager", why
    return one


def _why_eager(side: "timing.Scouted | Stop | None") -> str:
    return side.why_eager if isinstance(side, timing.Scouted) else ""


def _contest(means: Means, arena: Arena, result: Result, scouts: Scouts) -> None:
    """Blocks for all cases that both sides can run, then for those that only head can."""
    timed = [one for one in result.cases if one.course]
    pairs = [one for one in timed if one.base_fault is None] if "base" in means.sides else []
    probed: list[Window] = []
    if pairs:
        contest = _opened(means, arena, result, scouts, pairs, PAIR, probed)
        _alone(means, contest, pairs, full_only=True)
        steady = [one for place, one in enumerate(pairs) if ("base", place) not in contest.faults]
        _fight(means, contest, pairs, PAIR, result)
        _once_more(means, arena, result, scouts, pairs, probed)
        _check_base(means, contest, pairs, steady, result.overhead)
    single = [one for one in timed if one.head_fault is None and (one.base_fault is not None or one not in pairs)]
    if single:
        contest = _opened(means, arena, result, scouts, single, ALONE, probed)
        _fight(means, contest, single, ALONE, result)


def _opened(
    means: Means,
    arena: Arena,
    result: Result,
    scouts: Scouts,
    group: Sequence[Measured],
    names: Sequence[str],
    probed: list[Window],
    name: str = "",
) -> Contest:
    courses = [one.course for one in group if one.course]
    contest = Contest(arena, means.sides, courses, means.seed + name, means.probe, probed, result.overhead)
    contest.spent, contest.configs = result.spent, _pinned(result.cases, group, names, scouts)
    return contest


def _fight(means: Means, contest: Contest, group: list[Measured], names: Sequence[str], result: Result) -> None:
    """Blocks until no row needs more; one that has its answer gets no others."""
    for blocks, aa in _steps(names):
        contest.batch((*names, "base'") if aa else names, blocks, means.watch)
        with result.spent.during("judging"):
            _take(contest, group)
            result.overhead = probed_overhead(contest.probed, result.overhead)
            undecided = means.undecided(group, result.overhead)
        if not undecided:
            break
        more = set(map(id, undecided))
        contest.resting = {place for place, one in enumerate(group) if id(one) not in more}


def _once_more(
    means: Means, arena: Arena, result: Result, scouts: Scouts, pairs: Sequence[Measured], probed: list[Window]
) -> None:
    """Fresh processes for the rows that differ: an accident of one contest is told to nobody."""
    sound = [one for one in pairs if not one.head_fault and not one.base_fault]
    differing = [one for one in sound if means.differs(one, result.overhead)]
    if not differing:
        return
    contest = _opened(means, arena, result, scouts, differing, PAIR, probed, "/again")
    contest.batch(PAIR, stats.AGAIN, means.watch)
    for place, one in enumerate(differing):
        one.again = contest.blocks[place]
        drop(one.again)
        one.head_fault, one.base_fault = (contest.faults.get((side, place)) for side in ("head", "base"))
    result.overhead = probed_overhead(probed, result.overhead)


def _alone(means: Means, contest: Contest, group: Sequence[Measured], full_only: bool = False) -> None:
    """A block of the base while no process of head is there, apart from those beside head. Its time is in the full
    windows; who asks whether the base has a fault of its own needs the others too."""
    beside_head, contest.blocks, contest.resting = contest.blocks, [[] for _ in contest.courses], set()
    contest.batch(("base",), ALONE_FIRST, means.watch, full_only)
    for place, one in enumerate(group):
        one.alone += contest.blocks[place]
    contest.blocks = beside_head


def _pinned(
    found: Sequence[Measured], group: Sequence[Measured], names: Sequence[str], scouts: Scouts
) -> dict[tuple[str, int], int]:
    """What each side's autotuner chose in the scout, by side and place in the group."""
    scouted = {(side, place): scouts[side][found.index(one)] for place, one in enumerate(group) for side in names}
    return {key: one.config for key, one in scouted.items() if isinstance(one, timing.Scouted) and one.config >= 0}


def _steps(names: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """How many blocks each contest has, and whether base runs against itself too: up to the first look that decides."""
    if "base" not in names:
        yield BLOCKS_ALONE, False
        return
    before, looks = 0, stats.LOOKS
    for look in looks.at:
        if before and look < looks.deciding:  # such a look can't say more than the first: processes start together
            continue
        yield look - before, look <= looks.deciding
        before = look


def _take(contest: Contest, group: Sequence[Measured]) -> None:
    for place, one in enumerate(group):
        one.blocks = contest.blocks[place]
        drop(one.blocks)
        one.head_fault = contest.faults.get(("head", place), one.head_fault)
        one.base_fault = contest.faults.get(("base", place), one.base_fault)


def _check_base(
    means: Means, contest: Contest, group: Sequence[Measured], steady: Sequence[Measured], cost: Overhead
) -> None:
    """A base that is wrong or slow only beside head makes head's row INVALID; asked once more alone to be sure.

    `steady`: those whose base had no fault before head came.
    """
    suspects = [one for one in steady if not one.head_fault and (one.base_fault or _slower(one, cost))]
    if not suspects:
        return
    faults = {id(one): one.base_fault for one in suspects}
    contest.faults = {key: fault for key, fault in contest.faults.items() if key[0] != "base"}
    _alone(means, contest, group)
    for place, one in enumerate(group):
        again = contest.faults.get(("base", place))
        if one in suspects and again is None and (faults[id(one)] is not None or _slower(one, cost)):
            fault = faults[id(one)]
            what = fault.message if fault is not None else f"{_slower(one, cost):.0%} slower"
            one.head_fault = Stop("base-disturbed", f"beside head the base is {what}; alone it is not")


def _audit(means: Means, arena: Arena, result: Result, scouts: Scouts) -> None:
    """What head did in each case, by a record beside the kernel; one note where there is none."""
    asked, timed = [], []
    for one, scouted in zip(result.cases, scouts["head"], strict=True):
        if one.course and one.head_fault is None and isinstance(scouted, timing.Scouted):
            config = scouted.config if scouted.config >= 0 else None
            asked.append(one)
            timed.append(TimedCase(one.course, config, per_call(one.blocks, "head", result.overhead.wall)))
    for one, audited in zip(asked, audit.run(means.auditor, arena, timed, result.overhead), strict=False):
        one.audited = audited
    missing = means.auditor.recording_cost.missing
    result.notes += [f"no ledger of the GPU's work: {missing}"] if missing else []


def _slower(one: Measured, cost: Overhead) -> float:
    """By how much base is slower beside head than in its slowest block alone, if by more than chance; else 0."""
    near_head, alone = per_call(one.blocks, "base", cost.wall), per_call(one.alone, "base", cost.wall)
    share = statistics.median(near_head) / max(alone) - 1 if near_head and max(alone, default=0.0) > 0 else 0.0
    return share if share > disturbed(near_head) else 0.0


def disturbed(times: Sequence[float]) -> float:
    """The share by which base may be slower beside head: what its times there vary by, for there is nothing else that
    they may differ by. Head can widen that, and so gain up to the largest share; few blocks say nothing of it."""
    if len(times) < LEAST_SPREAD or min(times) <= 0:
        return DISTURBED
    return min(DISTURBED, max(LEAST_DISTURBED, SPREADS * stats.spread([math.log(time) for time in times])))
