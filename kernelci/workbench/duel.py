"""One kernel's cases measured from the first process to the last block: head alone, or base against head.

Order: a scout of the base alone, a scout of the head, then contests of a few blocks each until every row has an answer
or the budget is spent, and last the base alone once more.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from kernelci import stats
from kernelci.errors import Verdict
from kernelci.reference import Case, Reference
from kernelci.workbench import timing
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.contest import Block, Contest, Course, Opener, Spent, Watch, drop, per_call

BLOCKS_ALONE = 3
DISTURBED = 0.1


class Measured(Struct):
    """What a duel left for one case: its course and blocks, or the verdict that ended it for a side."""

    case: Case
    course: Course | None
    blocks: list[Block]
    head_fault: Verdict | None = None
    base_fault: Verdict | None = None


def run(
    device: str,
    reference: Reference,
    cases: Sequence[Case],
    sides: Mapping[str, Opener],
    calibration: Calibration,
    seed: str,
    watch: Watch,
    enough: Callable[[list[Measured]], bool],
) -> tuple[list[Measured], list[str], Spent]:
    """Measure all cases; `sides` has "head" and may have "base". `enough` looks at what there is after each contest.

    Raises Verdict for what concerns all cases.
    """
    began, spent = time.monotonic(), Spent()
    arena, note = timing.arena_for(device, reference, cases, calibration)
    try:
        scouts = {
            side: timing.scout(sides[side], arena, reference, cases, calibration)
            for side in sorted(sides)  # the base first: no process of head has run by then
        }
        found = [
            _measured(arena, reference, case, index, scouts, calibration, seed) for index, case in enumerate(cases)
        ]
        spent.setting_up = time.monotonic() - began
        _contest(arena, found, sides, scouts, seed, watch, enough, spent)
        _check_base(arena, reference, found, sides, scouts, calibration)
    finally:
        arena.close()
    return found, [note] if note else [], spent


def _measured(
    arena: Arena,
    reference: Reference,
    case: Case,
    index: int,
    scouts: Mapping[str, Sequence["timing.Scouted | Verdict"]],
    calibration: Calibration,
    seed: str,
) -> Measured:
    """A case with its course, by the slower side's time; without one where head fails."""
    head, base = scouts["head"][index], scouts["base"][index] if "base" in scouts else None
    one = Measured(case, None, [])
    one.head_fault = head if isinstance(head, Verdict) else None
    one.base_fault = base if isinstance(base, Verdict) else None
    times = [side.ns for side in (head, base) if isinstance(side, timing.Scouted)]
    if one.head_fault is None:
        one.course = timing.course(arena, reference, case, max(times), calibration, seed)
    return one


def _contest(
    arena: Arena,
    found: list[Measured],
    sides: Mapping[str, Opener],
    scouts: Mapping[str, Sequence["timing.Scouted | Verdict"]],
    seed: str,
    watch: Watch,
    enough: Callable[[list[Measured]], bool],
    spent: Spent,
) -> None:
    """Blocks for all cases that both sides can run, then for those that only head can."""
    pairs = [one for one in found if one.course and one.base_fault is None] if "base" in sides else []
    single = [one for one in found if one.course and one not in pairs]
    for group, names in ((pairs, ("base", "head")), (single, ("head",))):
        if not group:
            continue
        contest = Contest(arena, sides, [one.course for one in group if one.course], seed)
        contest.spent = spent
        for place, one in enumerate(group):
            for side in names:
                scouted = scouts[side][found.index(one)]
                if isinstance(scouted, timing.Scouted) and scouted.config >= 0:
                    contest.configs[side, place] = scouted.config
        for blocks, aa in _steps(names):
            contest.batch((*names, "base'") if aa else names, blocks, watch)
            _take(contest, group)
            if enough(group):
                break


def _steps(names: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """How many blocks each contest has, and whether base runs against itself too: in the first one."""
    if "base" not in names:
        yield BLOCKS_ALONE, False
        return
    before = 0
    for look in stats.LOOKS.at:
        yield look - before, not before
        before = look


def _take(contest: Contest, group: Sequence[Measured]) -> None:
    for place, one in enumerate(group):
        one.blocks = contest.blocks[place]
        drop(one.blocks)
        one.head_fault = contest.faults.get(("head", place))
        one.base_fault = contest.faults.get(("base", place))


def _check_base(
    arena: Arena,
    reference: Reference,
    found: Sequence[Measured],
    sides: Mapping[str, Opener],
    scouts: Mapping[str, Sequence["timing.Scouted | Verdict"]],
    calibration: Calibration,
) -> None:
    """A base that is wrong or slow only beside head makes head's row INVALID; asked once more alone to be sure."""
    for index, one in enumerate(found):
        before = scouts["base"][index] if "base" in scouts else None
        if not isinstance(before, timing.Scouted) or one.head_fault is not None:
            continue
        slow = _slower(one.blocks, before, calibration)
        if one.base_fault is None and not slow:
            continue
        (after,) = timing.scout(sides["base"], arena, reference, [one.case], calibration)
        if isinstance(after, timing.Scouted) and (
            one.base_fault is not None or _slower(one.blocks, after, calibration)
        ):
            what = one.base_fault.message if one.base_fault is not None else f"{slow:.0%} slower"
            one.head_fault = Verdict("base-disturbed", f"beside head the base is {what}; alone it is not")


def _slower(blocks: Sequence[Block], alone: timing.Scouted, calibration: Calibration) -> float:
    """By how much base is slower in these blocks than alone, where that is more than chance; else 0."""
    times = per_call(blocks, "base", calibration.overhead.wall)
    share = statistics.median(times) / alone.ns - 1 if times and alone.ns else 0.0
    return share if share > DISTURBED else 0.0
