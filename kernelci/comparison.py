"""Times of head against base: each row's verdict, over the whole report, and what the gate makes of it. Pure.

A row compares where it has the metric `delta` (a fraction, head over base less one, with its interval). Beside it may
stand `p`, `q`, `noise`, `floor`, `blocks`, `dropped`, `cycles`, `plain`, `again`, `time_base`, `time_head`,
`roofline_base`, `roofline_head`; the same tags with `_end_to_end` compare the call with its host side. A row without
`p` keeps the verdict that it has.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from kernelci import units
from kernelci.gate import Gate, Rule
from kernelci.model import (
    Finding,
    KernelReport,
    LostRow,
    Metric,
    Report,
    Row,
    RungResult,
    Unit,
    Verdict,
    by_tag,
    number,
    worst,
)
from kernelci.reasons import Outcome
from kernelci.stats import Effect, benjamini_hochberg, decide, least, shows

SLOWER = "slower"
# What a row's note begins with that tells a cause: by a profile of both sides, by a tool's rules, by an autotuner.
EXPLAINS, ADVISES, CHOICE = "explains: ", "finding: ", "the autotuner chose otherwise: "
KINDS = ("", "_end_to_end")  # of what is compared: the call on the device, and end to end


class ComparedRow(Struct, frozen=True):
    """One row's comparison; `delta` is None where the verdict was not measured (the same machine code)."""

    kernel: str
    case: str
    target: str
    verdict: Verdict
    delta: Metric | None
    base: Metric | None
    head: Metric | None
    roofline: tuple[Metric | None, Metric | None]
    cause: str
    q: Metric | None = None
    blocks: Metric | None = None


class ComparedRows(Struct, frozen=True):
    """All comparisons of a report by verdict, the largest effect first."""

    slower: tuple[ComparedRow, ...] = ()
    unknown: tuple[ComparedRow, ...] = ()
    faster: tuple[ComparedRow, ...] = ()
    same: tuple[ComparedRow, ...] = ()


class TimedRow(Struct, frozen=True):
    """A row's times where nothing is there to compare with. `speedups` are over named baselines."""

    kernel: str
    case: str
    time: Metric
    end_to_end: Metric | None
    attained: Metric | None
    speedups: tuple[Metric, ...]
    notes: str


def times(report: Report) -> ComparedRows:
    """Every comparison in a report."""
    found = sorted(_all(report), key=lambda each: -abs(_number(each.delta.value)) if each.delta else 0.0)
    by = {verdict: tuple(each for each in found if each.verdict is verdict) for verdict in Verdict}
    return ComparedRows(by[Verdict.SLOWER], by[Verdict.UNKNOWN], by[Verdict.FASTER], by[Verdict.SAME])


def tally(found: ComparedRows) -> str:
    """How many of each, in words: `1 SLOWER, 2 FASTER, 40 SAME`; nothing where nothing was compared."""
    groups = (found.slower, found.unknown, found.faster, found.same)
    return ", ".join(f"{len(group):,} {group[0].verdict}" for group in groups if group)


def measured(report: Report) -> tuple[TimedRow, ...]:
    """Every row that has a time and no comparison, in the report's order."""
    return tuple(
        TimedRow(
            kernel.name,
            row.case,
            found["time"],
            found.get("time_end_to_end"),
            found.get("of_ceiling"),
            tuple(metric for metric in row.metrics if metric.tag.startswith("speedup_")),
            "; ".join(row.notes[:3]),
        )
        for kernel, row, found in _rows(report)
        if "time" in found and not row.verdict and "delta" not in found
    )


def lost(base: Sequence[Row], head: Sequence[Row]) -> tuple[LostRow, ...]:
    """The rows that the base was measured on and the head lacks or skips."""
    kept = {(row.case, row.target): row for row in head}
    found = []
    for row in base:
        now = kept.get((row.case, row.target))
        if row.outcome is Outcome.SKIPPED or (now is not None and now.outcome is not Outcome.SKIPPED):
            continue
        why = now.finding.message if now is not None and now.finding is not None else ""
        found.append(LostRow(row.case, "skipped" if now is not None else "removed", row.target, why))
    return tuple(found)


def settle(report: Report, gate: Gate) -> Report:
    """The report with q-values over all its rows, verdicts, and what the gate stops as FAILED. Settling twice is once.

    Rows that have no `p`, or that did not pass for another reason than their time, stay as they are.
    """
    p_values = [_chance(found[f"p{kind}"]) for _, row, found in _rows(report) for kind in _compared(row, found)]
    q_values = iter(benjamini_hochberg(p_values))
    base = report.change.base if report.change else ""

    def settled(kernel: KernelReport, row: Row) -> Row:
        found = by_tag(row.metrics)
        asked = {kind: next(q_values) for kind in _compared(row, found)}
        return _settled(kernel.name, row, asked, gate.of(kernel.name, row.case), base) if asked else row

    kernels = []
    for kernel in report.kernels:
        rungs = tuple(_with_rows(rung, tuple(settled(kernel, row) for row in rung.rows)) for rung in kernel.rungs)
        kernels.append(msgspec.structs.replace(kernel, rungs=rungs))
    return msgspec.structs.replace(report, kernels=tuple(kernels))


def _compared(row: Row, found: dict[str, Metric]) -> tuple[str, ...]:
    """Which comparisons of a row take part: of the kernel's own time (""), of the call end to end."""
    if row.outcome is not Outcome.PASSED and (row.finding is None or row.finding.reason != SLOWER):
        return ()
    kinds = tuple(kind for kind in KINDS if f"p{kind}" in found and f"delta{kind}" in found)
    return kinds if "" in kinds else ()


def _settled(kernel: str, row: Row, q_values: dict[str, float], rule: Rule, base: str) -> Row:
    found = by_tag(row.metrics)
    verdicts, messages, doubts = list[Verdict](), list[str](), list[str]()
    for kind, q in q_values.items():
        practical = rule.end_to_end_floor if kind else rule.floor
        noise = _number(found[f"noise{kind}"].value) if f"noise{kind}" in found else 0.0
        effect = _effect(found, kind)
        plain = _shown(found[f"plain{kind}"]) if f"plain{kind}" in found else None
        verdict, doubt = _decided(found, kind, decide(effect, q, practical, noise=noise, plain=plain), practical)
        verdicts.append(verdict)
        doubts += doubt
        if plain is not None and verdict is Verdict.UNKNOWN:
            doubts.append(
                f"as the times were, with what followed the SM clock, it is {units.change(found[f'plain{kind}'])}"
            )
        floor = least(practical, noise)
        found |= {
            f"q{kind}": Metric(f"q{kind}", min(q, 1.0), Unit.FRACTION, "q", "false discovery rate over the report"),
            f"floor{kind}": Metric(f"floor{kind}", number(floor), Unit.FRACTION, "floor", "what a change must exceed"),
        }
        if verdicts[-1] is Verdict.SLOWER:
            messages.append(_message(effect, floor, kind))
    verdict = Verdict.SLOWER if Verdict.SLOWER in verdicts else verdicts[0]
    stops = verdict is Verdict.SLOWER and rule.stops
    notes = rule.notes if verdict is Verdict.SLOWER else ()
    return msgspec.structs.replace(
        row,
        outcome=Outcome.FAILED if stops else Outcome.PASSED,
        finding=Finding(SLOWER, "\n".join(messages), reproduce=_again(kernel, row.case, base)) if stops else None,
        metrics=tuple(found.values()),
        notes=tuple(dict.fromkeys((*doubts, *row.notes, *notes))),
        verdict=verdict,
    )


def _decided(found: dict[str, Metric], kind: str, verdict: Verdict, floor: float) -> tuple[Verdict, list[str]]:
    """A SLOWER or FASTER stands where the cycles, as far as they are known, and a second contest show it too; else it
    is UNKNOWN, with the reason."""
    if verdict not in (Verdict.SLOWER, Verdict.FASTER):
        return verdict, []
    where, in_cycles, again = "end to end " if kind else "", found.get(f"cycles{kind}"), found.get(f"again{kind}")
    if in_cycles is not None and not shows(_shown(in_cycles), verdict, floor):
        doubt = f"in cycles of the SM clock it is {units.change(in_cycles)}: its clock was another"
    elif again is None:
        doubt = "it was not measured once again"
    elif not shows(_shown(again), verdict, floor):
        doubt = f"measured once again it is {units.change(again)}"
    else:
        return verdict, [f"{where}measured once again by fresh processes: {units.change(again)}"]
    return Verdict.UNKNOWN, [f"{where}{verdict} by {units.change(found[f'delta{kind}'])}, but {doubt}"]


def _shown(delta: Metric, p: float = 1.0, blocks: int = 0) -> Effect:
    low = -1.0 if delta.low is None else _number(delta.low)
    high = float("inf") if delta.high is None else _number(delta.high)
    return Effect(_number(delta.value), low, high, p, blocks)


def _effect(found: dict[str, Metric], kind: str) -> Effect:
    blocks = found.get(f"blocks{kind}") or found.get("blocks")
    count = int(_number(blocks.value)) if blocks is not None else 0
    return _shown(found[f"delta{kind}"], _chance(found[f"p{kind}"]), count)


def _message(effect: Effect, floor: float, kind: str) -> str:
    size, low, high, least = (
        units.value(each, Unit.FRACTION) for each in (effect.effect, effect.low, effect.high, floor)
    )
    where = "end to end " if kind else ""
    return f"{where}{size} slower than base ({low.removesuffix(' %')} to {high}), floor {least}"


def _again(kernel: str, case: str, base: str) -> str:
    return f"kernelci run {kernel} --rungs benchmark --case {case} --base {base}" if base else ""


def _with_rows(rung: RungResult, rows: tuple[Row, ...]) -> RungResult:
    """The rung with these rows; where one of them was settled its outcome is again the worst row's."""
    if rows == rung.rows:
        return rung
    outcome = worst([row.outcome for row in rows])
    finding = None if outcome is Outcome.PASSED else next(row.finding for row in rows if row.outcome is outcome)
    return msgspec.structs.replace(rung, rows=rows, outcome=outcome, finding=finding)


def _rows(report: Report) -> Iterator[tuple[KernelReport, Row, dict[str, Metric]]]:
    for kernel in report.kernels:
        for rung in kernel.rungs:
            for row in rung.rows:
                yield kernel, row, by_tag(row.metrics)


def _all(report: Report) -> Iterator[ComparedRow]:
    for kernel, row, found in _rows(report):
        if row.verdict or "delta" in found:
            yield _time(kernel, row, found, report.environment.target)


def _time(kernel: KernelReport, row: Row, found: dict[str, Metric], target: str) -> ComparedRow:
    get = found.get
    delta = get("delta")
    verdict = row.verdict or (judged(delta, get("floor")) if delta else Verdict.UNKNOWN)
    roofline = (get("roofline_base"), get("roofline_head"))
    said = (row.finding.message,) if row.finding is not None and row.finding.reason != SLOWER else row.notes[:3]
    why = (*_chosen(row), cause(kernel, row.case, row.target or target, verdict)) if verdict is not Verdict.SAME else ()
    return ComparedRow(
        kernel.name, row.case, row.target, verdict, delta, get("time_base"), get("time_head"), roofline,
        "; ".join(filter(None, (*why, *said))), get("q"), get("blocks"),
    )  # fmt: skip


_WAYS = {Verdict.FASTER: "likely faster: ", Verdict.SLOWER: "likely slower: "}
_OTHER = ("changed: ", "the same machine code")


def cause(kernel: KernelReport, case: str, target: str, verdict: Verdict) -> str:
    """What dumps and profiles of base and head say of a time that differs: the likeliest cause, or nothing."""
    profile = kernel.rung("profile")
    rows = [row for row in profile.rows if row.case == case] if profile else []
    seen = [note.removeprefix(EXPLAINS) for row in rows for note in row.notes if note.startswith(EXPLAINS)]
    return "; ".join(filter(None, (_of_code(kernel, case, target, verdict), *seen[:1])))


def _chosen(row: Row) -> tuple[str, ...]:
    """Another choice of an autotuner than base's, which goes before what compiled code shows: that is of one choice."""
    return tuple(f"autotuner: {note.removeprefix(CHOICE)}" for note in row.notes if note.startswith(CHOICE))[:1]


def _of_code(kernel: KernelReport, case: str, target: str, verdict: Verdict) -> str:
    """The likeliest cause in the machine code. Where this case was not compiled by itself, the build of another of its
    dtype speaks for it."""
    rung = kernel.rung("dump")
    rows = [row for row in rung.rows if row.target == target and row.notes] if rung else []
    own = [row for row in rows if row.case == case]
    like = [row for row in rows if row.case.partition("-")[2] == case.partition("-")[2]]
    row = next(iter(own or like), None)
    ways = (_WAYS.get(verdict, _WAYS[Verdict.SLOWER]), *_OTHER)
    note = next((note for way in ways for note in row.notes if note.startswith(way)), "") if row else ""
    text = note.removeprefix(ways[0]).removeprefix(_OTHER[0])
    return f"{text} (in {row.case})" if text and row and row.case != case else text


def judged(delta: Metric, floor: Metric | None) -> Verdict:
    """SLOWER or FASTER where the whole interval lies beyond the floor, SAME where it lies within, else UNKNOWN."""
    if delta.low is None or delta.high is None:
        return Verdict.UNKNOWN
    low, high = _number(delta.low), _number(delta.high)
    limit = abs(_number(floor.value)) if floor else 0.0
    if low > limit:
        return Verdict.SLOWER
    if high < -limit:
        return Verdict.FASTER
    return Verdict.SAME if -limit <= low <= high <= limit else Verdict.UNKNOWN


def _chance(p: Metric) -> float:
    """A p-value; what is none, as 1."""
    value = _number(p.value)
    return value if 0 <= value <= 1 else 1.0


def _number(value: float | str) -> float:
    return float(value)
