"""correctness: each case under several draws against the float64 oracle, gated by what an honest one would lose."""

import contextlib

import torch
from msgspec import Struct
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.model import Metric, Row, Unit
from kernelci.reasons import Outcome
from kernelci.reference import Budget, Case, ReferenceFailed
from kernelci.rungs import Findings, Referee, elements, failed, rung, with_metrics
from kernelci.workbench import likeness, limits
from kernelci.workbench.compare import Comparison
from kernelci.workbench.drawn import FEW, VARIED, output_axes, split
from kernelci.workbench.judging import judge, judge_all
from kernelci.workbench.location import locate, neighbours
from kernelci.workbench.poison import bits
from kernelci.workbench.trial import is_refusal

FAULTS_BEFORE_GIVING_UP = 8
# In the full tier: calls on the same inputs, for the largest case (on a GPU: an interpreter runs its programs one after
# another, and a thousand calls of it show no more than a few) and for the others.
REPEATS_LARGEST, REPEATS = 1000, 30
# Configurations of an autotuner that are judged alone at most, each on so many cases.
CONFIGS, CONFIG_CASES = 64, 3
# A case with so many outputs shows where bad ones sit; the smallest cases come first and show nothing.
TELLING = 32
SECOND = "the second call: "
Outputs = dict[str, torch.Tensor]


@rung("correctness", after=("run",), needs=("device",))
def correctness(referee: Referee) -> Findings:
    """One row per case: the metrics of its worst draw, or the diagnosis of the first draw that failed."""
    referee.require_sound()
    rows: list[Row] = []
    limit = _limit(referee)
    for case in (*referee.cases(), *referee.hidden()):
        if limit is not None and case.id == limit.id:
            continue
        rows.append(_row_or_reason(referee, case))
        if sum(row.outcome is Outcome.FAILED for row in rows) >= FAULTS_BEFORE_GIVING_UP:
            notes = [f"stopped after {FAULTS_BEFORE_GIVING_UP} failed cases"]
            return Findings(rows=_telling(referee, rows), notes=notes)
    if any(row.outcome is Outcome.PASSED for row in rows):
        rows += _configs(referee)
    rows = _telling(referee, rows)
    return Findings(rows=[*rows, *([_at_limit(referee, limit)] if limit is not None else [])])


def _telling(referee: Referee, rows: list[Row]) -> list[Row]:
    """The rows, with one first among those that failed that is large enough to show a pattern; it also says what all
    that failed have, and none that passed has."""
    cases = {case.id: case for case in (*referee.cases(), *referee.hidden())}
    bad = [row for row in rows if row.outcome is Outcome.FAILED and row.case in cases]
    if not bad:
        return rows
    first = next((row for row in bad if elements(referee, cases[row.case]) >= TELLING), bad[0])
    good = [row for row in rows if row.outcome is Outcome.PASSED and row.case in cases]
    text = likeness.of_cases(*([dict(cases[row.case].values) for row in some] for some in (bad, good)))
    finding = first.finding
    assert finding is not None  # the model has it so for what failed
    if text:
        said = f"{finding.message}\nof {len(bad) + len(good)} cases {len(bad)} fail, just those where {text}"
        finding = replace(finding, message=said[:10_000])
    others = [row for row in rows if row is not first]
    at = min(rows.index(bad[0]), len(others))
    return [*others[:at], replace(first, finding=finding), *others[at:]]


def _limit(referee: Referee) -> Case | None:
    """Full tier, on a GPU: a case beyond 2^31 elements, unless other cases are asked for."""
    if referee.tier != "full" or not referee.device.is_gpu:
        return None
    named = {case.id for case in referee.cases()}
    try:
        found = limits.case_at(referee.reference)
    except ReferenceFailed as error:
        raise Stop("reference", str(error)) from error
    every = len(named) == len(referee.reference.cases())
    return found if found is not None and (every or found.id in named) else None


def _at_limit(referee: Referee, case: Case) -> Row:
    session = referee.open()
    try:
        limits.judge(session, referee.reference, case, referee.seed)
    except ReferenceFailed as error:
        return failed(referee, Stop("reference", str(error)), case, rung="correctness")
    except Stop as stop:
        return failed(referee, stop, case, rung="correctness")
    finally:
        session.close()
    return Row(Outcome.PASSED, case.id, notes=("beyond 2^31 elements: chosen entries, and the first and last ones",))


def _configs(referee: Referee) -> list[Row]:
    """Every configuration of an autotuner alone: the one that it takes here is not the one it takes elsewhere."""
    cases = [case for case in referee.cases() if referee.why_not(case) is None and elements(referee, case)]
    spread = cases[:: max(1, len(cases) // CONFIG_CASES)][:CONFIG_CASES]
    return [
        _config(referee, case, number)
        for number in range(min(referee.configs, CONFIGS) if referee.configs > 1 else 0)
        for case in spread
    ]


def _config(referee: Referee, case: Case, number: int) -> Row:
    label = f"configuration {number} of the autotuner"
    try:
        outputs = referee.pinned(case, VARIED, number).outputs
        row = _wrong(referee, case, VARIED, _compare(referee, case, VARIED, outputs), outputs, f"{label}: ")
    except Stop as stop:
        if stop.reason == "shared-memory":  # an autotuner passes over a configuration that does not fit
            return Row(Outcome.PASSED, case.id, notes=(f"{label} does not fit here: {stop.message}",))
        stop.message = f"{label}: {stop.message}"
        row = failed(referee, stop, case, VARIED, rung="correctness")
    return row or Row(Outcome.PASSED, case.id, notes=(label,))


def _row_or_reason(referee: Referee, case: Case) -> Row:
    refused = referee.why_not(case)
    if refused is not None:
        return failed(referee, refused, case, rung="correctness")
    try:
        return _row(referee, case)
    finally:
        referee.release(case)


def _lost(draws: tuple[str, ...], unsteady: list[str]) -> bool:
    """Whether too much can't be compared: all normal draws, or half of many."""
    normal = [draw for draw in draws if split(draw)[0].startswith("normal:") and not split(draw)[1]] or list(draws)
    return set(normal) <= set(unsteady) or (len(draws) > FEW + 1 and 2 * len(unsteady) >= len(draws))


class _Seen(Struct):
    """What the draws of a case showed."""

    worst: list[Comparison] = []
    unsteady: list[str] = []
    unlike: list[str] = []
    refused: list[str] = []
    dependent: list[str] = []
    distinct: int = 0


def _row(referee: Referee, case: Case) -> Row:
    seen, draws = _Seen(), referee.draws(case)
    stopped = referee.start_trials(*((case, draw) for draw in draws))
    compared = _Compared(referee, case, () if stopped else draws)
    for draw in (stopped,) if stopped else draws:
        try:
            row = _look(referee, case, draw, seen, compared)
        except Stop as stop:
            return failed(referee, stop, case, draw, rung="correctness")
        if row is not None:
            return row
    if _lost(draws, seen.unsteady):
        lost = Stop("unsteady-reference", f"on the draws {', '.join(seen.unsteady)}")
        return failed(referee, lost, case, rung="correctness")
    try:
        seen.distinct = _distinct(referee, case, draws[0])
    except Stop as stop:
        return failed(referee, stop, case, draws[0], rung="correctness")
    metrics = tuple(metric for comparison in seen.worst for metric in comparison.metrics())
    return Row(Outcome.PASSED, case.id, metrics=(*metrics, *_repeats(seen)), notes=_notes(referee, case, draws, seen))


class _Compared:
    """The comparisons of a case's first calls, made together: on a GPU each answer is waited for."""

    def __init__(self, referee: Referee, case: Case, draws: tuple[str, ...]) -> None:
        calls = {}
        for draw in draws:
            with contextlib.suppress(Stop):
                calls[draw] = (referee.drawn(case, draw), referee.trial(case, draw).outputs)
        self._found = dict(zip(calls, judge_all(referee.reference, tuple(calls.values())), strict=True))

    def of(self, draw: str) -> list[Comparison]:
        """One comparison per output. Raises Stop("reference")."""
        found = self._found[draw]
        if isinstance(found, ReferenceFailed):
            raise Stop("reference", str(found)) from found
        return found


def _look(referee: Referee, case: Case, draw: str, seen: _Seen, compared: _Compared) -> Row | None:
    """Judge one draw: a row that ends the case, or None. Raises Stop."""
    try:
        trial = referee.trial(case, draw)
    except Stop as stop:
        if not is_refusal(draw, stop):
            raise
        seen.refused.append(f"{draw.partition('+')[2]} ({stop.message.splitlines()[0][:120]})")
        return None
    found = compared.of(draw)
    if not all(comparison.steady for comparison in found):
        seen.unsteady.append(draw)
        return None
    row = _wrong(referee, case, draw, found, trial.outputs)
    if row is None and trial.again is not None:
        seen.unlike.append(draw)
        row = _wrong(referee, case, draw, _compare(referee, case, draw, trial.again), trial.again, SECOND)
        if row is None and referee.reference.repeatable:
            raise Stop("not-repeatable", "two calls on the same inputs gave different bits")
    if row is None:
        _relate(referee, case, draw, trial.outputs, seen)
        seen.worst = _worse(seen.worst, found)
    return row


def _compare(referee: Referee, case: Case, draw: str, outputs: Outputs) -> list[Comparison]:
    try:
        return judge(referee.reference, referee.drawn(case, draw), outputs)
    except ReferenceFailed as error:
        raise Stop("reference", str(error)) from error


def _relate(referee: Referee, case: Case, draw: str, outputs: Outputs, seen: _Seen) -> None:
    """Batch invariance: one entry alone has the bits that it has in its batch, or the reference does not ask for it."""
    kind, of = split(draw)[1:]
    if kind != "alone":
        return
    whole = referee.trial(case, VARIED).outputs
    same = all(
        torch.equal(bits(outputs[name]), bits(whole[name].narrow(axis, 0, 1).contiguous()))
        for name, axis in output_axes(referee.reference, case, of).items()
    )
    if not same and referee.reference.batch_invariant:
        raise Stop("batch-dependent", f"the first of {of} alone has other bits than in the batch")
    if not same:
        seen.dependent.append(of)


def _distinct(referee: Referee, case: Case, draw: str) -> int:
    """Full tier: the number of distinct results of many calls. Raises Stop where one of them is wrong."""
    if referee.tier != "full":
        return 0
    sizes = {one.id: elements(referee, one) for one in referee.cases() if referee.why_not(one) is None}
    largest = referee.device.is_gpu and sizes.get(case.id, 0) == max(sizes.values(), default=0)
    count = REPEATS_LARGEST if largest else REPEATS
    results = referee.repeats(case, draw, count)
    for outputs in results[1:]:
        wrong = next((one for one in _compare(referee, case, draw, outputs) if one.steady and not one.passed), None)
        if wrong is not None:
            text = f"output {wrong.name}, draw {draw}: one of {len(results)} distinct results of {count} calls is wrong"
            raise Stop("wrong", f"{text}: {_gate(wrong)}")
    if len(results) > 1 and referee.reference.repeatable:
        raise Stop("not-repeatable", f"{len(results)} distinct results in {count} calls on the same inputs")
    return len(results)


def _worse(known: list[Comparison], found: list[Comparison]) -> list[Comparison]:
    """Per output the comparison that used most of its room."""
    if not known:
        return found
    return [max(pair, key=_used) for pair in zip(known, found, strict=True)]


def _used(comparison: Comparison) -> float:
    return max(comparison.worst_ratio, comparison.rmse_ratio)


def _repeats(seen: _Seen) -> tuple[Metric, ...]:
    if not seen.distinct:
        return ()
    return (Metric("distinct", seen.distinct, Unit.COUNT, "distinct results", "of many calls on the same inputs"),)


def _notes(referee: Referee, case: Case, draws: tuple[str, ...], seen: _Seen) -> tuple[str, ...]:
    notes = [f"{len(draws) - len(seen.unsteady)} draws", *filter(None, [referee.substitution(case)])]
    budget = referee.reference.budget
    if budget != Budget():
        worst, rmse = (f"{factor:g}" if factor else "the usual one" for factor in (budget.worst, budget.rmse))
        notes.append(f"the reference's own budget: {worst} for an element, {rmse} for RMSE")
    if case.kind == "hidden":
        notes.append("a hidden case, drawn from the domain with this run's seed")
    for text, names in (
        ("not counted, since the honest implementation loses its digits", seen.unsteady),
        ("two calls on the same inputs gave different bits", seen.unlike),
        ("refused clearly", seen.refused),
        ("alone other bits than in a batch", seen.dependent),
    ):
        if names:
            notes.append(f"{text}: {', '.join(names)}")
    return tuple(notes)


def _wrong(
    referee: Referee, case: Case, draw: str, found: list[Comparison], outputs: Outputs, when: str = ""
) -> Row | None:
    """A diagnosis of the first output that is wrong: which gate, how far, where, and the values around the worst."""
    wrong = next((comparison for comparison in found if not comparison.passed), None)
    if wrong is None:
        return None
    stop = Stop("wrong", "\n".join(_diagnosis(referee, case, draw, wrong, outputs[wrong.name], when)))
    return with_metrics(failed(referee, stop, case, draw, rung="correctness"), wrong.metrics())


def _diagnosis(
    referee: Referee, case: Case, draw: str, found: Comparison, actual: torch.Tensor, when: str
) -> list[str]:
    text = [f"output {found.name}, draw {draw}: {when}{_gate(found)}"]
    oracle, inputs = referee.truth(case, draw).oracle[found.name], referee.drawn(case, draw).inputs
    got = found.numbers(actual)
    place = locate(found.bad, (got.double() - oracle.double()).abs() if got.shape == oracle.shape else None)
    if place is not None:
        tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
        like = likeness.of_values(got, oracle, found.bad, tensors)
        text += [place.text() + (f"; {like}" if like else ""), neighbours(found.name, place.worst, got, oracle)]
    elif actual.numel() and not found.said:
        text.append("no single element is beyond its bound: the error is spread over all of them")
    return [*text, *_hint(referee, case, draw, found, actual, when == SECOND)]


def _hint(referee: Referee, case: Case, draw: str, found: Comparison, actual: torch.Tensor, second: bool) -> list[str]:
    """What the variant of a draw says about the cause, and whether the answer is another call's."""
    kind, of = split(draw)[1:]
    hints = {
        "poked": f"one element of {of} differs from the draw {VARIED}: is an answer kept by a fingerprint?",
        "swapped": f"two elements of {of} have changed places since the draw {VARIED}: is an answer kept by a sum?",
        "alone": f"it is right for all of {of} at once: does it take something from a neighbour?",
        "permuted": f"the same entries of {of} in another order",
    }
    if kind == "poked":
        try:
            before = referee.trial(case, VARIED).outputs[found.name]
        except Stop:
            return []
        if before.shape == actual.shape and torch.equal(bits(before), bits(actual)):
            return [f"these are the bits of the answer to {VARIED}, whose {of} differs in one element"]
    if second:
        return ["the first call on the same inputs was right: does it keep something between calls?"]
    return [hints[kind]] if kind in hints else ([f"{of} is {kind} in memory"] if kind else [])


def _gate(found: Comparison) -> str:
    if found.said:
        return found.said
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
