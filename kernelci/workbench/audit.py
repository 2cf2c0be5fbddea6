"""The audit: windows of one call and of many in a fresh candidate whose GPU work CUPTI records, beside the contest's.

The recorder works beside the kernel, so it proves nothing by itself. But its record has to agree with the referee's
window around it, and that window with those in which nobody recorded: who works otherwise while being watched is seen.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kernelci.errors import Verdict
from kernelci.model import Finding
from kernelci.reasons import Outcome, outcome_of
from kernelci.units import duration, significant
from kernelci.workbench.activity import MAX_RECORDS
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import PROBE, PROBE_CALL, PROBE_ENTRY
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Contestant, Course, Opener, Spent
from kernelci.workbench.ledger import AGREEMENT, GAP_NS, OWN, Account, Share, judge
from kernelci.workbench.protocol import Ledger, Series, Source
from kernelci.workbench.series import usual_mode
from kernelci.workbench.session import Session

ATTEMPTS = 3  # a host that was busy for a moment must not make a measurement doubtful
# What CUPTI adds to a launch: to the window, and to the launch's own record. Where calls are short, that varies.
RECORDING_NS, STAMP_NS = GAP_NS, 500.0
SHORT_NS = 20_000.0
SHORT_RECORDING_NS, SHORT_STAMP_NS = 5_000.0, 1_500.0
FROM_HOST = 0.5  # of a call's time that may differ where launches come from the host, and ns a launch besides
FROM_HOST_NS = 20_000.0
SPREADS = 6.0  # standard deviations of a window's own cost
NAMES = 4  # of kernels in a note


class Auditor(Struct, frozen=True):
    """How candidates start that record, which symbols the compile rung built for this GPU (none: unknown), and why this
    machine gives no ledger, if it doesn't."""

    opened: Opener
    symbols: frozenset[str]
    missing: str


class Timed(Struct):
    """A case as it was timed: its course, the autotuner's choice, and the time of a call in each block that counts."""

    course: Course
    config: int | None
    times: Sequence[float]


def missing_here(device: str, opened: Callable[[Arena, Source, str], Session]) -> str:
    """Why there is no ledger on this machine, asked with a kernel of our own; empty if there is one."""
    arena = Arena(device, 2**16)
    session = opened(arena, PROBE, PROBE_ENTRY)
    try:
        session.prepare(Series(0, PROBE_CALL, (0,), 0, usual_mode(device)))
        session.ledger()
        session.go(0)
        found = session.ledger()
    except Verdict as verdict:  # CUPTI's own fault, since nobody else's code is there
        return f"{verdict.reason}: {verdict.message}"
    finally:
        session.close()
        arena.close()
    return found.missing or ("" if found.activities else "CUPTI records nothing in a graph")


def run(auditor: Auditor, arena: Arena, cases: Sequence[Timed], overhead: Overhead) -> list[Account]:
    """The accounts of all cases, by one fresh process; empty where this machine gives no ledger."""
    if auditor.missing or not cases:
        return []
    session = auditor.opened(arena)
    try:
        return [_account(session, one, auditor.symbols, overhead) for one in cases]
    finally:
        session.close()


def faults(account: Account | None, outcome: Outcome) -> Iterator[Verdict]:
    """An account's findings of this outcome."""
    for finding in account.findings if account is not None else ():
        if outcome_of(finding.reason) is outcome:
            yield Verdict(finding.reason, finding.message)


def told(account: Account) -> Iterator[str]:
    """Whose kernels took the time, for a row's notes."""
    if account.shares:
        names = ", ".join(_named(share) for share in account.shares[:NAMES])
        more = f" and {len(account.shares) - NAMES} more" if len(account.shares) > NAMES else ""
        streams = f"; {account.streams} streams" if account.streams > 1 else ""
        yield f"GPU work by CUPTI: {names}{more}{streams}"


def _named(share: Share) -> str:
    owner = {OWN: "its own", "": "unknown"}.get(share.owner, share.owner)
    return f"{significant(100 * share.share, 2)} % {share.name} ({owner})"


def _account(session: Session, one: Timed, symbols: Iterable[str], overhead: Overhead) -> Account:
    """The account of one case. What goes wrong only here is a finding too."""
    try:
        return audit(session, one, symbols, overhead)
    except Verdict as verdict:
        if verdict.reason == "wrong-while-timed":
            return Account(findings=(Finding(verdict.reason, f"while it was audited: {verdict.message}"),))
        text = f"it was timed without a fault, and ends as {verdict.reason} while it is audited: {verdict.message}"
        return Account(findings=(Finding("audit-differs", text),))


def audit(session: Session, one: Timed, symbols: Iterable[str], overhead: Overhead) -> Account:
    """Audit a case; a doubtful window is repeated. Raises Verdict for what goes wrong in the candidate."""
    symbols = tuple(symbols)
    session.forget()
    _, alone = _recorded(session, _ready(session, one, 1))
    if alone.missing:
        return judge(alone, alone, 1, 0.0, symbols, expected=True)
    launches = max(1, sum(line.count for line in alone.activities))
    course = _ready(session, one, max(1, min(one.course.calls["full"], MAX_RECORDS // 2 // launches)))
    gap = GAP_NS if course.mode == "graph" else float("inf")
    account = Account()
    for _ in range(ATTEMPTS):
        window, many = _recorded(session, course)
        account = judge(
            alone, many, window.calls, overhead.wall(window) * window.calls, symbols, gap_ns=gap, expected=True
        )
        text = difference(window, many, one, overhead)
        if text:
            account = replace(account, findings=(*account.findings, Finding("audit-differs", text)))
        if not any(faults(account, Outcome.INVALID)):
            break
    return account


def _ready(session: Session, one: Timed, calls: int) -> Course:
    """A course of windows of so many calls, made ready as any other, and as it was timed: captured or not."""
    course = replace(one.course, calls={"full": calls})
    course.bank.deal(calls)
    Contestant("audit", session).prepare(calls, course, "full", one.config)
    if course.mode != one.course.mode:
        raise Verdict("raised", f"the graph is refused: {course.why_eager}")
    return course


def _recorded(session: Session, course: Course) -> tuple[Window, Ledger]:
    """A window like any other, and what CUPTI saw of it."""
    session.ledger()
    window = Contestant("audit", session).go(course.calls["full"], course, "full", Spent())
    return window, session.ledger()


def difference(window: Window, many: Ledger, one: Timed, overhead: Overhead) -> str:
    """What is wrong with the time of a recorded window, or with the work in it, beside the other times; or nothing."""
    if not one.times:
        return ""
    shortest, longest = min(one.times), max(one.times)
    launches = sum(line.count for line in many.activities) / window.calls
    short = longest < SHORT_NS * max(1.0, launches)
    share, recording, stamp = AGREEMENT, RECORDING_NS, STAMP_NS
    if one.course.mode == "eager":
        share, recording = FROM_HOST, FROM_HOST_NS
    elif short:
        recording, stamp = SHORT_RECORDING_NS, SHORT_STAMP_NS
    each, busy, room = overhead.wall(window), many.busy_ns / window.calls, SPREADS * overhead.spread / window.calls
    least, most = (1 - share) * shortest - room - launches * stamp, (1 + share) * longest + room + launches * recording
    if not least <= each <= most:
        return f"{_time(each)} a call while it is recorded, {_time(longest)} otherwise"
    if busy > (1 + AGREEMENT) * longest + room + launches * stamp:
        return f"{_time(busy)} of work a call while it is recorded, and a call takes {_time(longest)} otherwise"
    return ""


def _time(time_ns: float) -> str:
    return duration(time_ns * 1e-9)
