"""perturb: what must not matter is changed around the kernel (kernelci.disturbing), and its answers must stay right."""

import torch

from kernelci import disturbing
from kernelci.disturbing import Disturbance
from kernelci.errors import Stop
from kernelci.model import Row
from kernelci.reasons import Outcome, outcome_of
from kernelci.reference import Case, ReferenceFailed
from kernelci.rungs import Findings, Referee, elements, failed, rung
from kernelci.workbench.activity import printable
from kernelci.workbench.drawn import VARIED
from kernelci.workbench.judging import judge
from kernelci.workbench.location import locate
from kernelci.workbench.poison import bits
from kernelci.workbench.trial import Trial

CASES = 3
# Of a case's outputs: larger ones say no more here, and each is called several times for each disturbance.
ELEMENTS = {"cpu": 2**13, "cuda": 2**24}
# What a call may end with where a disturbance asks for more than a kernel must give.
EXCUSED = ("raised", "shared-memory", "compile-error", "out-of-memory", "hang")


@rung("perturb", after=("correctness",), needs=("device",))
def perturb(referee: Referee) -> Findings:
    """One row per case, a few of them, each under every disturbance that there is here."""
    device: disturbing.Device = "cuda" if referee.device.is_gpu else "cpu"
    kinds = disturbing.fitting(referee.card.backend, device, referee.tier)
    if not kinds:
        raise Stop("no-disturbance", f"{referee.card.backend} on this device")
    cases = _cases(referee, ELEMENTS[device])
    if not cases:
        raise Stop("cost", f"no case with outputs of at most {ELEMENTS[device]} elements runs here")
    return Findings(rows=[_row(referee, case, kinds) for case in cases])


def _cases(referee: Referee, most: int) -> list[Case]:
    """A few of different sizes, the largest that fits first: it has masks, several blocks and loops."""
    sizes = {case: elements(referee, case) for case in referee.cases() if referee.why_not(case) is None}
    fitting = {size: case for case, size in reversed(sizes.items()) if 0 < size <= most}
    distinct = [fitting[size] for size in sorted(fitting, reverse=True)]
    return distinct[:: max(1, -(-len(distinct) // CASES))]


def _row(referee: Referee, case: Case, kinds: tuple[Disturbance, ...]) -> Row:
    notes = []
    try:
        plain = referee.trial(case, VARIED)
        for kind in kinds:
            notes.append(f"{kind.title}: {_told(referee, case, kind, plain)}")
    except Stop as stop:
        return failed(referee, stop, case, VARIED, rung="perturb")
    finally:
        referee.release(case)
    return Row(Outcome.PASSED, case.id, notes=tuple(notes))


def _told(referee: Referee, case: Case, kind: Disturbance, plain: Trial) -> str:
    """What a disturbance did to the answer, where that is no fault. Raises Stop where it is."""
    try:
        trial: Trial = referee.disturbed(case, VARIED, kind.name)
        _require_right(referee, case, trial)
    except Stop as stop:
        if outcome_of(stop.reason) is not Outcome.FAILED:
            raise  # the runner's or the reference's
        first = next(iter(stop.message.splitlines()), "")[:200]
        if stop.reason == "raised" and first.startswith(disturbing.NOTHING):
            return f"not made, since {first.removeprefix(f'{disturbing.NOTHING}: ')}"
        if kind.loose and stop.reason in EXCUSED:
            return f"left alone, since it ends as {stop.reason} ({first})"
        if kind.told:
            return f"{_asserted(stop) or first}: it {kind.why}"
        raise _perturbed(kind, stop) from stop
    if _same(plain, trial):
        return "the same bits"
    if referee.reference.repeatable and not kind.loose:
        raise _perturbed(kind, Stop("not-repeatable", "right, but with other bits than before"))
    return "right, with other bits"


def _asserted(stop: Stop) -> str:
    """The device's assertion in what the candidate printed last; empty where there is none."""
    found = (line.strip() for line in stop.log.splitlines() if "ssertion" in line)
    return printable(next(found, ""), 200)


def _perturbed(kind: Disturbance, stop: Stop) -> Stop:
    text = f"{kind.title}, and then: {stop.message}\nUndisturbed it is right, so it {kind.why}."
    return Stop("perturbed", text, file=stop.file, line=stop.line, log=stop.log)


def _require_right(referee: Referee, case: Case, trial: Trial) -> None:
    drawn = referee.drawn(case, VARIED)
    for outputs in filter(None, (trial.outputs, trial.again)):
        try:
            found = judge(referee.reference, drawn, outputs)
        except ReferenceFailed as error:
            raise Stop("reference", str(error)) from error
        for wrong in (one for one in found if one.steady and not one.passed):
            place = locate(wrong.bad)
            raise Stop("wrong", f"output {wrong.name}: {place.text() if place else 'beyond its bound as a whole'}")


def _same(plain: Trial, trial: Trial) -> bool:
    return all(torch.equal(bits(values), bits(trial.outputs[name])) for name, values in plain.outputs.items())
