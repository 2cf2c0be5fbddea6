"""correctness: each case under several draws against the float64 oracle, gated by an honest implementation's error."""

from kernelci.errors import Verdict
from kernelci.model import Metric, Row
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.rungs import Findings, Referee, failed, rung, with_metrics
from kernelci.workbench.compare import Comparison, compare
from kernelci.workbench.location import locate, neighbours
from kernelci.workbench.trial import Trial

FAULTS_BEFORE_GIVING_UP = 8


@rung("correctness", after=("run",), needs=("device",))
def correctness(referee: Referee) -> Findings:
    """One row per case: the metrics of its worst draw, or the diagnosis of the first draw that failed."""
    rows: list[Row] = []
    for case in referee.cases():
        refused = referee.why_not(case)
        rows.append(failed(referee, refused, case, rung="correctness") if refused else _row(referee, case))
        if sum(row.outcome is Outcome.FAILED for row in rows) >= FAULTS_BEFORE_GIVING_UP:
            return Findings(rows=rows, notes=[f"stopped after {FAULTS_BEFORE_GIVING_UP} failed cases"])
    return Findings(rows=rows)


def _row(referee: Referee, case: Case) -> Row:
    worst: list[Comparison] = []
    unsteady, unlike, draws = [], [], referee.draws(case)
    for draw in draws:
        try:
            trial = referee.trial(case, draw)
            found = _compare(referee, case, draw, trial)
            _require_repeatable(referee, trial)
        except Verdict as verdict:
            return failed(referee, verdict, case, draw, rung="correctness")
        if not trial.repeated:
            unlike.append(draw)
        if not all(comparison.steady for comparison in found):
            unsteady.append(draw)
            continue
        wrong = next((comparison for comparison in found if not comparison.passed), None)
        if wrong is not None:
            return _wrong(referee, case, draw, wrong, trial)
        worst = _worse(worst, found)
    if 2 * len(unsteady) >= len(draws):
        return failed(
            referee, Verdict("unsteady-reference", f"on the draws {', '.join(unsteady)}"), case, rung="correctness"
        )
    return Row(Outcome.PASSED, case.id, metrics=_metrics(worst), notes=_notes(referee, case, draws, unsteady, unlike))


def _compare(referee: Referee, case: Case, draw: str, trial: Trial) -> list[Comparison]:
    truth, reference = referee.truth(case, draw), referee.reference
    return [
        compare(name, values, truth.oracle[name], truth.honest[name], reference.precision, reference.nan_allowed)
        for name, values in trial.outputs.items()
    ]


def _require_repeatable(referee: Referee, trial: Trial) -> None:
    if referee.reference.repeatable and not trial.repeated:
        raise Verdict("not-repeatable", "two calls on the same inputs gave different bits")


def _worse(known: list[Comparison], found: list[Comparison]) -> list[Comparison]:
    """Per output the comparison that used most of its room."""
    if not known:
        return found
    return [max(pair, key=_used) for pair in zip(known, found, strict=True)]


def _used(comparison: Comparison) -> float:
    return max(comparison.worst_ratio, comparison.rmse_ratio)


def _metrics(comparisons: list[Comparison]) -> tuple[Metric, ...]:
    return tuple(metric for comparison in comparisons for metric in comparison.metrics())


def _notes(
    referee: Referee, case: Case, draws: tuple[str, ...], unsteady: list[str], unlike: list[str]
) -> tuple[str, ...]:
    notes = [f"{len(draws) - len(unsteady)} draws", *filter(None, [referee.substitution(case)])]
    if unsteady:
        notes.append(f"not counted, since the honest implementation loses its digits: {', '.join(unsteady)}")
    if unlike:
        notes.append(f"two calls on the same inputs gave different bits: {', '.join(unlike)}")
    return tuple(notes)


def _wrong(referee: Referee, case: Case, draw: str, found: Comparison, trial: Trial) -> Row:
    """A diagnosis: which gate, how far, where, and the values around the worst element."""
    actual = trial.outputs[found.name]
    oracle = referee.truth(case, draw).oracle[found.name]
    text = [f"output {found.name}, draw {draw}: {_gate(found)}"]
    error = (actual.double() - oracle.double()).abs()
    place = locate(found.bad, error)
    if place is not None:
        text += [place.text(), neighbours(found.name, place.worst, actual, oracle)]
    elif actual.numel():
        text.append("no single element is beyond its bound: the error is spread over all of them")
    row = failed(referee, Verdict("wrong", "\n".join(text)), case, draw, rung="correctness")
    return with_metrics(row, found.metrics())


def _gate(found: Comparison) -> str:
    if found.misplaced:
        return f"{found.misplaced} elements are NaN or Inf on one side only"
    if found.precision == "exact":
        return "the values must be equal"
    broken = [
        f"{title} is {ratio:.3g} times its bound"
        for title, ratio in (
            ("worst element", found.worst_ratio),
            ("RMSE (and with it PSNR)", found.rmse_ratio),
            ("1 - cosine", found.cosine_ratio if found.precision == "low" else 0.0),
        )
        if ratio > 1
    ]
    return ", ".join(broken)
