"""What a kernel's report lacks that its base had: cases that are gone, rows that are skipped now, targets that the card
no longer names.

Base does not climb, so what it was measured on is worked out: the cases of its own reference that its own caps admit,
and what its card and its compilation serve.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kernelci.comparison import lost as lost_rows
from kernelci.errors import Stop
from kernelci.model import Finding, LostRow, Row, RungResult
from kernelci.reasons import Outcome
from kernelci.referee import KernelReferee
from kernelci.reference import Case, ReferenceFailed
from kernelci.rungs.precheck import check_dependencies
from kernelci.workbench.device import serves

EVERY = "every case"
BY_CASE = ("cost", "interpreter-cost")
Rungs = Mapping[str, RungResult]


def lost(referee: KernelReferee, done: Rungs) -> tuple[LostRow, ...]:
    """The rows of the base that are missing after this climb; none without a base."""
    if referee.base is None or referee.kernel.card is None or referee.base.kernel.card is None:
        return ()
    found = (*_targets(referee), *_all_of_it(referee, done), *_builds(referee, done), *_cases(referee, done))
    return tuple(dict.fromkeys(found))


def _targets(referee: KernelReferee) -> Iterator[LostRow]:
    """Targets that the base's card has and the kernel's own has not."""
    assert referee.base is not None
    own, base = referee.card, referee.base.card
    for target in base.targets or referee.config.targets if own.targets else ():
        if target not in own.targets:
            yield LostRow(EVERY, "removed", target, f"the card no longer names {target}")


def _all_of_it(referee: KernelReferee, done: Rungs) -> tuple[LostRow, ...]:
    """Everything, where the card asks for what is not here, or names a backend that does not run here."""
    assert referee.base is not None
    said = [rung.finding for rung in done.values() if rung.outcome is Outcome.SKIPPED and rung.finding is not None]
    for finding in said:
        if finding.reason == "missing-dependency" and _installed(referee.base):
            return lost_rows((Row(Outcome.PASSED, EVERY),), (_skipped(EVERY, finding),))
        if finding.reason == "no-interpreter" and serves(referee.base.card.backend, referee.device):
            return lost_rows((Row(Outcome.PASSED, EVERY),), (_skipped(EVERY, finding),))
    return ()


def _installed(base: KernelReferee) -> bool:
    try:
        check_dependencies(base.card.dependencies)
    except Stop:
        return False
    return True


def _builds(referee: KernelReferee, done: Rungs) -> tuple[LostRow, ...]:
    """Targets that base compiles for, and head's host code no longer does without data."""
    rows = done["compile"].rows if "compile" in done else ()
    skipped = [row for row in rows if row.outcome is Outcome.SKIPPED and row.finding is not None]
    return lost_rows(
        [Row(Outcome.PASSED, EVERY, row.target) for row in skipped if _compiles(referee, row.target)],
        [_skipped(EVERY, row.finding, row.target) for row in skipped if row.finding is not None],
    )


def _compiles(referee: KernelReferee, target: str) -> bool:
    assert referee.base is not None
    try:
        return referee.base.compiled(target).stop is None
    except Stop:
        return False


def _cases(referee: KernelReferee, done: Rungs) -> tuple[LostRow, ...]:
    """Cases of the base's own reference that are gone, or beyond the caps now."""
    before = _before(referee)
    if before is None:
        return ()
    try:
        base = [_admitted(before, case) for case in before.cases()]
        head = [_now(case.id, done) for case in referee.cases()]
    except (Stop, ReferenceFailed):  # precheck says so of head's; a base's that is broken measured nothing
        return ()
    return lost_rows(base, head)


def _before(referee: KernelReferee) -> KernelReferee | None:
    """The base's kernel before the base's own reference, under its options; None where nothing of that differs, or one
    case alone was asked for."""
    court, theirs = referee.court, referee.court.base
    path = theirs.catalog.references.get(referee.kernel.reference) if theirs is not None else None
    if theirs is None or referee.base is None or path is None or court.case_filter:
        return None
    ours = court.catalog.references.get(referee.kernel.reference)
    if ours is not None and path.read_bytes() == ours.read_bytes() and theirs.options == court.config:
        return None
    other = replace(court, catalog=theirs.catalog, config=theirs.options, references={}, base=None)
    return KernelReferee(referee.base.kernel, other, (), side="base")


def _admitted(before: KernelReferee, case: Case) -> Row:
    """Base's row of a case: skipped where its own caps forbid it."""
    refused = before.why_not(case)
    return Row(Outcome.PASSED, case.id) if refused is None else _skipped(case.id, before.finding(refused))


def _now(case_id: str, done: Rungs) -> Row:
    """Head's row of a case: skipped where a rung says that it is too large."""
    rows = (row for rung in done.values() for row in rung.rows if row.case == case_id)
    why = next((row.finding for row in rows if row.finding is not None and row.finding.reason in BY_CASE), None)
    return Row(Outcome.PASSED, case_id) if why is None else _skipped(case_id, why)


def _skipped(case: str, finding: Finding, target: str = "") -> Row:
    return Row(Outcome.SKIPPED, case, target, finding=finding)
