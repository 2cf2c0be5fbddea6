"""The audit: windows of one call and of many in a fresh candidate whose GPU work CUPTI records, beside the contest's.

The recorder works beside the kernel, so it proves nothing by itself. But its record has to agree with the referee's
window around it, and that window with those in which nobody recorded: who works otherwise while being watched is seen.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kernelci import stats
from kernelci.errors import Stop
from kernelci.model import Finding
from kernelci.reasons import Outcome, outcome_of
from kernelci.units import duration_ns, listed, significant
from kernelci.workbench.activity import MAX_RECORDS
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import PROBE, PROBE_CALL, PROBE_ENTRY, by_lot
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Contestant, Course, Opener
from kernelci.workbench.ledger import AGREEMENT, GAP_NS, OWN, Audited, Share, judge
from kernelci.workbench.protocol import Ledger, Series, Source
from kernelci.workbench.series import usual_mode
from kernelci.workbench.session import Session
from kernelci.workbench.spent import Spent

ATTEMPTS = 3  # a host that was busy for a moment must not make a measurement doubtful
# What CUPTI adds to a launch's own record, and where calls are short, to the window and to the record: that varies.
STAMP_NS = 500.0
SHORT_NS = 20_000.0
SHORT_LAUNCH_NS, SHORT_STAMP_NS = 5_000.0, 1_500.0
FROM_HOST = 0.5  # of a call's time that may differ where launches come from the host, and ns a launch besides
FROM_HOST_NS = 20_000.0
SPREADS = 6.0  # standard deviations of a window's own cost
NAMES = 4  # of kernels in a note
PROBED_SIZES, PROBED_ROUNDS = (32, 64, 128, 256), 4
LAUNCH_MARGIN = 1.5  # by which kernels with more arguments than the probe's may be dearer to record


class RecordingCost(Struct, frozen=True):
    """What recording costs on this machine, ns: a window, its spread (one standard deviation), and each launch.

    `missing`: why there is none; empty if there is.
    """

    missing: str = ""
    window_ns: float = 0.0
    spread_ns: float = 0.0
    launch_ns: float = 0.0

    def idle_ns(self, overhead: Overhead) -> float:
        """What a recorded window may take beyond what any other window costs, its launches apart."""
        return max(0.0, self.window_ns - overhead.ns) + SPREADS * self.spread_ns

    @property
    def gap_ns(self) -> float:
        """What each launch may take beyond its work."""
        return max(GAP_NS, LAUNCH_MARGIN * self.launch_ns)


class Auditor(Struct, frozen=True):
    """How candidates start that record, which symbols the compile rung built for this GPU (none: unknown), and what
    recording costs here."""

    opened: Opener
    symbols: frozenset[str]
    recording_cost: RecordingCost


class TimedCase(Struct):
    """A case as it was timed: its course, the autotuner's choice, and the time of a call in each block that counts."""

    course: Course
    config: int | None
    times: Sequence[float]


def recording_cost(device: str, opened: Callable[[Arena, Source, str], Session]) -> RecordingCost:
    """Whether there is a ledger on this machine and what it costs, asked with a kernel of our own."""
    arena = Arena(device, 2**16)
    session = opened(arena, PROBE, PROBE_ENTRY)
    try:
        session.prepare(Series(0, PROBE_CALL, (0,), 0, usual_mode(device)))
        session.ledger()
        session.go(0)
        found = session.ledger()
        missing = found.missing or ("" if found.activities else "CUPTI records nothing in a graph")
        return RecordingCost(missing) if missing else _cost(session, device)
    except Stop as stop:  # CUPTI's own fault, since nobody else's code is there
        return RecordingCost(f"{stop.reason}: {stop.message}")
    finally:
        session.close()
        arena.close()


def _cost(session: Session, device: str) -> RecordingCost:
    """A line through what recorded windows of the probe take beside their work."""
    for size in PROBED_SIZES:
        session.prepare(Series(size, PROBE_CALL, (0,) * size, 0, usual_mode(device)))
    sizes, idle = [], []
    for size in by_lot(device, PROBED_SIZES, PROBED_ROUNDS, lambda: session.turn({})):
        session.ledger()
        wall_ns, *_ = session.go(size)
        sizes.append(size)
        idle.append(wall_ns - session.ledger().busy_ns)
    line = stats.line(sizes, idle)
    return RecordingCost("", max(line.intercept, 0.0), line.residual, max(line.slope, 0.0))


def run(auditor: Auditor, arena: Arena, cases: Sequence[TimedCase], overhead: Overhead) -> list[Audited]:
    """The audits of all cases, by one fresh process; empty where this machine gives no ledger."""
    if auditor.recording_cost.missing or not cases:
        return []
    session = auditor.opened(arena)
    try:
        return [_audited(session, one, auditor, overhead) for one in cases]
    finally:
        session.close()


def faults(audited: Audited | None, outcome: Outcome) -> Iterator[Stop]:
    """The findings of an audit that have this outcome, as stops."""
    for finding in audited.findings if audited is not None else ():
        if outcome_of(finding.reason) is outcome:
            yield Stop(finding.reason, finding.message)


def told(audited: Audited) -> Iterator[str]:
    """Whose kernels took the time, for a row's notes."""
    if audited.shares:
        names = listed([_named(share) for share in audited.shares], NAMES)
        streams = f"; {audited.streams} streams" if audited.streams > 1 else ""
        yield f"GPU work by CUPTI: {names}{streams}"


def _named(share: Share) -> str:
    owner = {OWN: "its own", "": "unknown"}.get(share.owner, share.owner)
    return f"{significant(100 * share.share, 2)} % {share.name} ({owner})"


def _audited(session: Session, one: TimedCase, auditor: Auditor, overhead: Overhead) -> Audited:
    """The audit of one case. What goes wrong only here is a finding too."""
    try:
        return audit(session, one, auditor, overhead)
    except Stop as stop:
        if stop.reason == "wrong-while-timed":
            return Audited(findings=(Finding(stop.reason, f"while it was audited: {stop.message}"),))
        text = f"it was timed without a fault, and ends as {stop.reason} while it is audited: {stop.message}"
        return Audited(findings=(Finding("audit-differs", text),))


def audit(session: Session, one: TimedCase, auditor: Auditor, overhead: Overhead) -> Audited:
    """Audit a case; a doubtful window is repeated. Raises Stop for what goes wrong in the candidate."""
    symbols, cost = auditor.symbols, auditor.recording_cost
    session.forget()
    _, alone = _recorded(session, _ready(session, one, 1))
    if alone.missing:
        return judge(alone, alone, 1, 0.0, symbols, expected=True)
    launches = max(1, sum(line.count for line in alone.activities))
    course = _ready(session, one, max(1, min(one.course.calls["full"], MAX_RECORDS // 2 // launches)))
    gap, idle = (cost.gap_ns, cost.idle_ns(overhead)) if course.mode == "graph" else (float("inf"), 0.0)
    audited = Audited()
    for _ in range(ATTEMPTS):
        window, many = _recorded(session, course)
        waited = overhead.wall(window) * window.calls
        audited = judge(
            alone, many, window.calls, waited, symbols,
            gap_ns=gap, idle_ns=idle, unsure_ns=overhead.unsure_ns, expected=True,
        )  # fmt: skip
        text = difference(window, many, one, overhead, cost)
        if text:
            audited = replace(audited, findings=(*audited.findings, Finding("audit-differs", text)))
        if not any(faults(audited, Outcome.INVALID)):
            break
    return audited


def _ready(session: Session, one: TimedCase, calls: int) -> Course:
    """A course of windows of so many calls, made ready as any other, and as it was timed: captured or not."""
    course = replace(one.course, calls={"full": calls})
    course.bank.deal(calls)
    Contestant("audit", session).prepare(calls, course, "full", one.config)
    if course.mode != one.course.mode:
        raise Stop("raised", f"the graph is refused: {course.why_eager}")
    return course


def _recorded(session: Session, course: Course) -> tuple[Window, Ledger]:
    """A window like any other, and what CUPTI saw of it."""
    session.ledger()
    window = Contestant("audit", session).go(course.calls["full"], course, "full", Spent())
    return window, session.ledger()


def difference(window: Window, many: Ledger, one: TimedCase, overhead: Overhead, cost: RecordingCost) -> str:
    """What is wrong with the time of a recorded window, or with the work in it, beside the other times; or nothing."""
    if not one.times:
        return ""
    shortest, longest = min(one.times), max(one.times)
    launches = sum(line.count for line in many.activities) / window.calls
    short = longest < SHORT_NS * max(1.0, launches)
    share, launch, stamp, idle = AGREEMENT, cost.gap_ns, STAMP_NS, cost.idle_ns(overhead) / window.calls
    if one.course.mode == "eager":
        share, launch, idle = FROM_HOST, FROM_HOST_NS, 0.0
    elif short:
        launch, stamp = max(launch, SHORT_LAUNCH_NS), SHORT_STAMP_NS
    each, busy = overhead.wall(window), many.busy_ns / window.calls
    room = (SPREADS * overhead.spread + overhead.unsure_ns) / window.calls
    least = (1 - share) * shortest - room - launches * stamp
    most = (1 + share) * longest + room + launches * launch + idle
    if not least <= each <= most:
        return f"{duration_ns(each)} a call while it is recorded, {duration_ns(longest)} otherwise"
    if busy > (1 + AGREEMENT) * longest + room + launches * stamp:
        work = duration_ns(busy)
        return f"{work} of work a call while it is recorded, and a call takes {duration_ns(longest)} otherwise"
    return ""
