"""The second referee: the head's own judge, heard in a sandbox. What it is called, who may have it run, and what of its
report is taken over.

All that it writes is hostile: it is decoded as any report that nobody vouches for, only kernels that it was asked about
are kept, under the names and files that the base's kernelci found, and what is kept is small.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from kernelci import digest, inert, results
from kernelci.errors import ReportError
from kernelci.model import Finding, KernelReport, Metric, Report, Row, RungResult, Second
from kernelci.reasons import REASONS, Outcome

LABEL = "kernelci:judge"
TITLE = "second referee"
CAVEAT = (
    "The change's own judge says this, in a sandbox of its own. The change decides there what is right, so none of "
    "these rows turns a check green."
)
ROLES = ("reference", "rung", "configuration", "template")
"""Files that the second referee has from the head; workflows, packaging and kernelci stay the base's."""
FACTS, SAID = "confined.json", "said.json"  # what the sandbox's own side leaves, and what came out of it
MAX_BYTES = 16 * 2**20
KEPT_BYTES = 4 * 2**20
RUNGS, METRICS, NOTES, LINES = 24, 12, 4, 20
ROWS = (200, 20, 0)
CHARACTERS = 2_000
DESCRIPTION = 200
LONGEST_S = 1e6
_RUNG = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class Confined(Struct, frozen=True, forbid_unknown_fields=True):
    """What the sandbox's own side says of a run in it."""

    isolation: str = ""
    why: str = ""
    """Why there is no report; empty where there is one."""
    log: str = ""
    """The last lines that were printed inside: untrusted."""
    remark: str = ""
    """What else did not go well."""


class Line(Struct, frozen=True):
    """What the second referee says of one kernel, for people: never by a sign that looks green."""

    title: str
    kernel: KernelReport
    word: str
    rungs: str
    """Each rung that it climbed, and how that ended."""
    stop: digest.Stop | None = None


_WORDS = {
    Outcome.PASSED: "says passed",
    Outcome.FAILED: "says FAILED",
    Outcome.SKIPPED: "skipped",
    Outcome.BROKEN: "says BROKEN",
    Outcome.INVALID: "says INVALID",
}


def lines(report: Report) -> tuple[Line, ...]:
    """The second referee's rows, in the order of their kernels."""
    return tuple(_line_of(kernel, report) for kernel in (report.second.kernels if report.second else ()))


def _line_of(kernel: KernelReport, report: Report) -> Line:
    stops = digest.stops(msgspec.structs.replace(report, kernels=(kernel,)))
    climbed = [rung for rung in kernel.rungs if rung.outcome is not Outcome.SKIPPED]
    words = "; ".join(f"{rung.rung} {_WORDS[rung.outcome].removeprefix('says ')}" for rung in climbed)
    return Line(titled(kernel), kernel, _WORDS[kernel.outcome], words, next(iter(stops), None))


def how(owners: Iterable[str] = ()) -> str:
    """Who gets the change's own judge heard, and by what."""
    named = ", ".join(owners)
    who = f"one of {named}" if named else "somebody who maintains or administers the repository"
    return (
        f"{who} can have the change's own judge heard, in a sandbox: the label {LABEL} does it, for this commit alone"
    )


def reason(line: Line) -> str:
    """Why a kernel stopped there, in our words; empty where it did not."""
    if line.stop is None:
        return ""
    place = digest.place(line.stop.row) if line.stop.row else ""
    return f"{line.stop.rung.rung}: {REASONS[line.stop.finding.reason].title}{f' ({place})' if place else ''}"


def is_offered(report: Report) -> bool:
    """Whether the change brings a judge that could be heard, and was not."""
    change = report.change
    if change is None or report.second is not None:
        return False
    return bool(change.unjudged) or any(each.role in ROLES for each in change.judge)


def titled(kernel: KernelReport) -> str:
    """The name that a row of the second referee goes by."""
    return f"{TITLE}: {kernel.name}"


def admitted(data: bytes, asked: Sequence[KernelReport], confined: Confined, by: str) -> Second:
    """What is taken over of the bytes that came out of the sandbox; never fails.

    `asked`: the kernels in question, without rungs, as the trusted side knows them.
    """
    plain = Second(by=by[:100], isolation=confined.isolation[:1000], log=inert.tail(confined.log, LINES)[:CHARACTERS])
    if confined.why:
        return msgspec.structs.replace(plain, why=_line(confined.why))
    try:
        said = _decoded(data)
    except ReportError as error:
        return msgspec.structs.replace(plain, why=_line(f"it left no report that can be read: {error.message}"))
    kernels = tuple(_named(kernel, said[kernel.name]) for kernel in asked if kernel.name in said)
    missing = [kernel.name for kernel in asked if kernel.name not in said]
    lacks = [f"it said nothing of {', '.join(missing[:8])}"] if missing else []
    why = _line("; ".join([*lacks, *filter(None, [confined.remark])]))
    return msgspec.structs.replace(plain, kernels=_small(kernels), why=why)


def _decoded(data: bytes) -> dict[str, KernelReport]:
    if len(data) > MAX_BYTES:
        raise ReportError(f"larger than {MAX_BYTES // 2**20} MiB")
    return {kernel.name: kernel for kernel in results.decode(data).kernels}


def _named(known: KernelReport, said: KernelReport) -> KernelReport:
    """The kernel as the trusted side knows it, with what was said of its rungs."""
    rungs = {rung.rung: rung for rung in said.rungs if _RUNG.fullmatch(rung.rung)}
    return msgspec.structs.replace(known, rungs=tuple(rungs.values())[:RUNGS], lost=())


def _small(kernels: tuple[KernelReport, ...]) -> tuple[KernelReport, ...]:
    """With as many rows as stay within the limit; at last none, and then only as many kernels as do."""
    for rows in ROWS:
        kept = tuple(_cut(kernel, rows) for kernel in kernels)
        if len(msgspec.json.encode(kept)) <= KEPT_BYTES:
            return kept
    while len(msgspec.json.encode(kept)) > KEPT_BYTES:
        kept = kept[: len(kept) // 2]
    return kept


def _cut(kernel: KernelReport, rows: int) -> KernelReport:
    return msgspec.structs.replace(kernel, rungs=tuple(_rung(rung, rows) for rung in kernel.rungs))


def _rung(rung: RungResult, rows: int) -> RungResult:
    """Those rows first that did not pass; no artifacts, since no file leaves the sandbox."""
    order = sorted(rung.rows, key=lambda row: row.finding is None)[:rows]
    more = len(rung.rows) - len(order)
    notes = (*map(_line, rung.notes[:NOTES]), *((f"{more:,} more rows were left out",) if more else ()))
    return RungResult(
        rung.rung,
        rung.outcome,
        min(max(rung.duration_s, 0.0), LONGEST_S),
        _finding(rung.finding),
        tuple(map(_row, order)),
        _metrics(rung.metrics),
        (),
        notes,
    )


def _row(row: Row) -> Row:
    return msgspec.structs.replace(
        row,
        finding=_finding(row.finding),
        metrics=_metrics(row.metrics),
        notes=tuple(map(_line, row.notes[:NOTES])),
    )


def _metrics(found: tuple[Metric, ...]) -> tuple[Metric, ...]:
    return tuple(
        msgspec.structs.replace(each, description=inert.line(each.description, DESCRIPTION)) for each in found[:METRICS]
    )


def _finding(found: Finding | None) -> Finding | None:
    """Without a command: people paste those, and this one's judge is not theirs yet."""
    if found is None:
        return None
    message, log = inert.head(found.message, LINES), inert.tail(found.log, LINES)
    return msgspec.structs.replace(found, message=message[:CHARACTERS], log=log[:CHARACTERS], reproduce="")


def _line(text: str) -> str:
    return inert.line(text, CHARACTERS)
