"""What an agent needs of a report: per kernel the rung that stopped it, its smallest failing case, and what to do.

The same record comes from a local report and from a pull request; messages and logs in it are the kernel's own words,
so untrusted.
"""

import re
from typing import Literal

import msgspec
from msgspec import Struct

from kernelci import digest, second
from kernelci.comparison import times
from kernelci.model import BLOCKING, Budget, Finding, KernelReport, Name, Report, Row, RungResult, Second, Text
from kernelci.reasons import REASONS, Outcome

SCHEMA_VERSION = 1
LOG_LINES = 40
NOTES = 5
State = Literal["waiting", "running", "reported", "no-report", "closed"]


class Failure(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Why a kernel stopped, by its smallest failing case."""

    rung: Name
    reason: Name
    title: Text
    diagnosis: Text
    next_step: Text
    case: Name = ""
    target: Name = ""
    draw: Name = ""
    file: Name = ""
    line: int = 0
    log: Text = ""
    reproduce: Text = ""
    failing_rows: int = 0
    notes: tuple[Text, ...] = ()
    """What is said of that case besides: how its machine code differs from the base's, the likeliest cause first."""


class Kernel(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One kernel: its outcome, and where it stopped if it did."""

    name: Name
    path: Name
    outcome: Outcome
    first_failure: Failure | None = None
    skipped: tuple[Name, ...] = ()


class Slower(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A time that is slower than the base's, or of which nobody knows."""

    kernel: Name
    case: Name
    verdict: Name
    delta: float | str
    cause: Text = ""


class Action(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that may be done next. `who`: whoever works on the change, or somebody with rights."""

    who: Literal["author", "maintainer"]
    do: Text
    command: Text = ""


class SecondReferee(Struct, omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    """What the change's own judge says, where it was heard. It is no evidence: nothing here turns a check green."""

    caveat: Text
    kernels: tuple[Kernel, ...] = ()
    by: Name = ""
    why: Text = ""
    isolation: Text = ""


class Remote(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where the report comes from, if from a pull request."""

    repository: Name
    pull: int
    head_sha: Name
    run_url: Name = ""
    attempt: int = 0
    conclusion: Name = ""
    title: Text = ""


class Feedback(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """All of it."""

    schema_version: int
    state: State
    outcome: Outcome | None = None
    sentence: Text = ""
    kernels: tuple[Kernel, ...] = ()
    times: tuple[Slower, ...] = ()
    actions: tuple[Action, ...] = ()
    remote: Remote | None = None
    artifacts: tuple[str, ...] = ()
    budget: Budget | None = None
    """GPU time: of a pull request what all its runs have left, of a report what that run alone leaves."""
    second: SecondReferee | None = None


def encode(found: Feedback) -> str:
    """As JSON, indented, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"


def of(report: Report) -> Feedback:
    """The feedback that a report holds."""
    headline = digest.headline(report)
    kernels = tuple(_kernel(kernel) for kernel in report.kernels)
    found = times(report)
    slower = tuple(
        Slower(each.kernel, each.case, each.verdict, each.delta.value if each.delta else "nan", each.cause)
        for each in (*found.slower, *found.unknown)
    )
    return Feedback(
        SCHEMA_VERSION,
        "reported",
        report.outcome,
        headline.sentence,
        kernels,
        slower,
        _actions(report, kernels),
        second=_second(report.second),
        budget=report.budget,
    )


def _second(found: Second | None) -> SecondReferee | None:
    if found is None:
        return None
    kernels = tuple(_kernel(msgspec.structs.replace(each, name=second.titled(each))) for each in found.kernels)
    return SecondReferee(second.CAVEAT, kernels, found.by, found.why, found.isolation)


def _kernel(kernel: KernelReport) -> Kernel:
    stopped = kernel.stopped_at
    skipped = tuple(rung.rung for rung in kernel.rungs if rung.outcome is Outcome.SKIPPED)
    return Kernel(kernel.name, kernel.path, kernel.outcome, _failure(stopped) if stopped else None, skipped)


def _failure(rung: RungResult) -> Failure:
    bad = [row for row in rung.rows if row.outcome in BLOCKING and row.finding is not None]
    row = min(bad, key=_size) if bad else None
    finding = row.finding if row else rung.finding
    assert finding is not None  # the model has it so
    reason = REASONS[finding.reason]
    where = row or Row(Outcome.PASSED)
    return Failure(
        rung.rung, finding.reason, reason.title, finding.message, reason.next_step, where.case, where.target,
        where.draw, finding.file, finding.line, _tail(finding), digest.reproduce(finding), len(bad),
        where.notes[:NOTES],
    )  # fmt: skip


def _tail(finding: Finding) -> str:
    return "\n".join(finding.log.splitlines()[-LOG_LINES:])


def _size(row: Row) -> tuple[float, str]:
    """How large a case is, by the sizes in its name (`17x1000-fp16`); those without any come last."""
    sizes = re.match(r"[0-9]{1,12}(?:x[0-9]{1,12}){0,9}", row.case)
    product = 1.0
    for part in sizes.group().split("x") if sizes else ():
        product *= float(part)
    return (product if sizes else float("inf"), row.case)


def _actions(report: Report, kernels: tuple[Kernel, ...]) -> tuple[Action, ...]:
    found = [_action(kernel) for kernel in kernels if kernel.first_failure is not None]
    if report.change is not None and report.change.judge:
        found.append(Action("maintainer", "review the files of the judge that the change touches"))
    if second.is_offered(report):
        found.append(Action("maintainer", second.how()))
    if report.change is not None and report.change.incomplete:
        found.append(Action("maintainer", report.change.incomplete))
    return tuple(found)


def _action(kernel: Kernel) -> Action:
    failure = kernel.first_failure
    assert failure is not None
    if kernel.outcome is Outcome.BROKEN:
        return Action("maintainer", f"{kernel.name}: {failure.next_step}", failure.reproduce)
    return Action("author", f"change {kernel.path}: {failure.title}. {failure.next_step}", failure.reproduce)
