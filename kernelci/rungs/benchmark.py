"""benchmark: how long a call takes, by a clock that the kernel can't bend; and base against head where there is a base.

docs/benchmark.md tells how it is measured.
"""

import time
from collections.abc import Iterator

from msgspec.structs import replace

from kernelci import comparison, footprint, stats
from kernelci.basing import same_sources
from kernelci.compiling.builder import call_of, source_of
from kernelci.errors import Stop
from kernelci.footprint import Footprint
from kernelci.gate import Gate
from kernelci.model import Metric, Row, Unit, Verdict
from kernelci.reasons import Outcome
from kernelci.reference import Cost
from kernelci.rungs import Findings, Referee, failed, rung, with_metrics
from kernelci.workbench import audit, baselines, duel, figures, ledger, timing
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead, Time
from kernelci.workbench.contest import COPIED
from kernelci.workbench.duel import Measured
from kernelci.workbench.workspace import takes

SAME_CODE = "the machine code and its launches are the base's own, byte for byte"
IDENTICAL = f"{SAME_CODE}, and so is the source: no comparison"
OTHER_HOST = f"{SAME_CODE}; the source around it differs"
BY_CHANCE = "the clocks disagreed in the first contest and not in the second: compared by the referee's clock alone"
ROWS = 60  # of a report, for which q-values are looked ahead while others are still to be measured


@rung("benchmark", after=("correctness",), needs=("gpu", "quiet"))
def benchmark(referee: Referee) -> Findings:
    """One row per bench case."""
    cases = tuple(case for case in referee.cases() if case.kind == "bench")
    if not cases:
        raise Stop("no-bench-cases", f"reference {referee.reference.name} has no bench case")
    began = time.monotonic()
    calibration, took = referee.calibration(), _footprint(referee)
    alike = _alike(referee, took)
    base = None if alike == IDENTICAL else referee.base
    sides = {"head": referee.open} | ({"base": base.open} if base is not None else {})
    device, auditor = referee.device.torch_name, referee.auditor()
    undecided, differs = _undecided(referee), _differs(referee)
    means = duel.Means(
        device, sides, referee.probe, referee.watch, undecided, referee.seed, auditor, _returns(referee), differs
    )
    calibrated = time.monotonic() - began
    found = duel.run(means, referee.reference, cases, calibration)
    found.spent.add("calibrating", calibrated)
    calibration = replace(calibration, overhead=found.overhead)
    rows = [_row(referee, one, calibration, alike) for one in found.cases]
    with found.spent.during("baselines"):
        rows, took_baselines = _with_baselines(referee, found.cases, rows, calibration)
    said = [*took_baselines, *(took.notes() if took is not None else ())]
    notes = [*found.notes, *said, found.spent.text(time.monotonic() - began)]
    metrics = [*_ceilings(calibration), *(took.metrics() if took is not None else ())]
    return Findings(rows=rows, notes=notes, metrics=metrics)


def _footprint(referee: Referee) -> Footprint | None:
    """What both sides take of the machine, exactly; None without a base, or where head isn't compiled for this GPU."""
    target = referee.device.target
    if referee.base is None or target not in referee.targets:
        return None
    return footprint.compare(referee.base.compiled(target), referee.compiled(target))


def _row(referee: Referee, one: Measured, calibration: Calibration, alike: str) -> Row:
    try:
        row = _measured(referee, one, calibration)
        verdict = Verdict.SAME if alike == IDENTICAL else row.verdict
        return replace(row, verdict=verdict, notes=(*row.notes, alike) if alike else row.notes)
    except Stop as stop:
        return failed(referee, stop, one.case, rung="benchmark")


def _is_compared(one: Measured) -> bool:
    """Whether base was timed beside head."""
    return any("base" in block.windows for block in one.blocks)


def _with_baselines(
    referee: Referee, found: list[Measured], rows: list[Row], calibration: Calibration
) -> tuple[list[Row], list[str]]:
    """The rows that passed, with what a user would otherwise call; and what that took."""
    if not referee.config.baselines:
        return rows, []
    cases = [one.case for one, row in zip(found, rows, strict=True) if row.outcome is Outcome.PASSED]
    by_case, note = referee.baselines(tuple(cases), calibration)

    def beside(row: Row) -> Row:
        own = by_case.get(row.case, ())
        return with_metrics(row, baselines.metrics(row, own), baselines.notes(own))

    return list(map(beside, rows)), [note] if note else []


def _measured(referee: Referee, one: Measured, calibration: Calibration) -> Row:
    """The row of a case that was measured. Raises Stop where it can't be trusted, or head is at fault."""
    if one.head_fault is not None:
        raise one.head_fault
    for fault in audit.faults(one.audited, Outcome.FAILED):
        raise fault
    cost, dtype = timing.cost_of(referee.reference, one.case), timing.dtype_of_case(one.case)
    time = figures.checked_time(one.blocks, "head", calibration, cost, dtype)
    for fault in audit.faults(one.audited, Outcome.INVALID):
        raise fault
    metrics = [*figures.of_time(time, one.blocks, calibration, cost, dtype)]
    notes = list(_notes(one, time.narrowed))
    if one.audited is not None:
        metrics += ledger.metrics(one.audited)
        notes += [*one.audited.notes, *audit.told(one.audited)]
    if _is_compared(one):
        base = _time_of_base(one, calibration, cost, dtype)
        metrics.append(figures.time_metric("time_base", "base", base, "of base's call"))
        metrics.append(figures.time_metric("time_head", "head", time, "of head's call"))
        metrics += figures.rooflines(calibration.ceiling_ns(cost, dtype), base, time)
        for kind in comparison.KINDS:
            found = figures.Duel(one.blocks, calibration.overhead, end_to_end=bool(kind))
            metrics += [*found.metrics(kind, one.again), *found.metrics_again(one.again, kind)]
            notes += [BY_CHANCE] if found.by_chance(one.again) else []
    if one.base_fault is not None:
        what = "measured once again" if _is_compared(one) else "no comparison"
        notes.append(f"{what}: base ends as {one.base_fault.reason}: {one.base_fault.message}"[:1000])
    dropped = sum(bool(block.dropped) for block in one.blocks)
    if dropped:
        metrics.append(Metric("dropped", dropped, Unit.COUNT, "dropped", "blocks that don't count"))
    return Row(Outcome.PASSED, one.case.id, metrics=tuple(metrics), notes=tuple(notes))


def _time_of_base(one: Measured, calibration: Calibration, cost: Cost, dtype: str) -> Time:
    """Raises Stop: what can't be trusted of the base makes the comparison, and so the row, as doubtful: head could
    hide what it costs behind a base that it has disturbed."""
    try:
        return figures.checked_time(one.blocks, "base", calibration, cost, dtype)
    except Stop as stop:
        raise Stop(stop.reason, f"of base: {stop.message}") from stop


def _notes(one: Measured, narrowed: bool) -> Iterator[str]:
    course = one.course
    assert course is not None
    yield f"{course.calls['full']} calls a window, {len(one.blocks)} blocks"
    if course.mode == "eager":
        yield f"eager: it can't be captured in a CUDA graph: {course.why_eager}"[:1000]
    if course.copied.get("head"):
        yield f"{COPIED}: {course.copied['head']}"[:1000]
    if not narrowed:
        yield "by the referee's clock alone"
    yield from _choices(one.choices)
    yield from sorted({f"block dropped: {block.dropped}" for block in one.blocks if block.dropped})


def _choices(choices: dict[str, str]) -> Iterator[str]:
    """What each side's autotuner took; another choice than base's is a cause."""
    base, head = choices.get("base", ""), choices.get("head", "")
    if head and base and head != base:
        yield f"{comparison.CHOICE}{base} -> {head}"
    elif head:
        yield f"autotuner: {head}"


def _returns(referee: Referee) -> bool:
    """Whether a side's entry may return its outputs, for all that its file shows."""
    outputs = call_of(referee.reference, referee.reference.cases()[0]).outputs
    sides = [side for side in (referee, referee.base) if side is not None]
    return not all(takes(source_of(side.kernel), side.card.entry, outputs) for side in sides)


def _alike(referee: Referee, took: Footprint | None) -> str:
    """What is said of machine code that is base's own; IDENTICAL where nothing is left that could differ. Other source
    around it may launch what the compile rung does not build, as a call of torch's."""
    if referee.base is None or took is None or not (took.identical and took.same_launches):
        return ""
    return IDENTICAL if same_sources(referee.base.kernel, referee.kernel) else OTHER_HOST


def _floor(referee: Referee, one: Measured, kind: str) -> float:
    rule = Gate.now(referee.config.gate).of(referee.kernel.name, one.case.id)
    return rule.end_to_end_floor if kind else rule.floor


def _answer(referee: Referee, one: Measured, found: figures.Duel, q: float, kind: str = "") -> Verdict:
    floor, noise = _floor(referee, one, kind), found.noise()
    return stats.decide(found.effect(), q, floor, noise=noise, cycles=found.cycles(), plain=found.plain())


def _undecided(referee: Referee) -> duel.Undecided:
    """The rows without an answer on the device: neither a fault nor another verdict than UNKNOWN."""

    def undecided(group: list[Measured], overhead: Overhead) -> list[Measured]:
        duels = [(one, _duel(one, overhead)) for one in group if not one.head_fault and not one.base_fault]
        known = [(one, found) for one, found in duels if found is not None]
        qs = stats.benjamini_hochberg([found.effect().p for _, found in known], total=max(ROWS, len(known)))
        answers = [_answer(referee, one, found, q) for (one, found), q in zip(known, qs, strict=True)]
        return [one for (one, _), answer in zip(known, answers, strict=True) if answer is Verdict.UNKNOWN]

    return undecided


def _differs(referee: Referee) -> duel.Differs:
    """Whether a row may become SLOWER or FASTER when all q-values are there (no q is smaller than its p), or INVALID
    because its clocks disagree."""

    def differs(one: Measured, overhead: Overhead) -> bool:
        duels = [(kind, _duel(one, overhead, kind)) for kind in comparison.KINDS]
        if any(found is None for _, found in duels):
            return True
        answers = [_answer(referee, one, found, found.effect().p, kind) for kind, found in duels if found is not None]
        return bool({Verdict.SLOWER, Verdict.FASTER} & set(answers))

    return differs


def _duel(one: Measured, overhead: Overhead, kind: str = "") -> figures.Duel | None:
    """The comparison so far; None where it can't be trusted, which more blocks of the same contest don't change."""
    found = figures.Duel(one.blocks, overhead, end_to_end=bool(kind))
    try:
        found.effect()
    except Stop:
        return None
    return found


def _ceilings(calibration: Calibration) -> Iterator[Metric]:
    cost = calibration.overhead
    yield Metric(
        "copy", calibration.copy_bytes_per_s, Unit.BYTES_PER_SECOND, "copy", "measured within the GPU's memory"
    )
    for dtype, peak in calibration.peaks.items():
        yield Metric(f"matmul:{dtype}", peak, Unit.FLOP_PER_SECOND, f"matmul {dtype}", "torch's own, 8192 cubed")
    yield Metric(
        "overhead", cost.ns, Unit.NANOSECONDS, "clock overhead", "of a window beside its calls", cost.low, cost.high
    )
    yield Metric(
        "empty", cost.call_ns, Unit.NANOSECONDS, "empty call", "a kernel that does next to nothing, in a graph"
    )
