"""run: does it run at all? Every case once: right shape and dtype, every element written, nothing else touched, and
NaN or Inf only where the oracle has them."""

import contextlib
import math

import torch

from kernelci.compiling.builder import call_of
from kernelci.errors import Stop
from kernelci.model import Row
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.rungs import Findings, Referee, failed, rung
from kernelci.workbench.location import locate
from kernelci.workbench.narrow import facts, is_float
from kernelci.workbench.protocol import TensorPlace

FAULTS_BEFORE_GIVING_UP = 3
# Of a case's inputs and outputs: the truths of so many small cases are kept until the next rung asks for them.
SMALL_ELEMENTS = 2**20


@rung("run", after=("compile",), needs=("device",))
def run(referee: Referee) -> Findings:
    """One row per case, with the first normal draw."""
    rows: list[Row] = []
    for number, case in enumerate(referee.cases()):
        if number == 1 and referee.device.is_gpu:
            _start_small(referee, referee.cases()[1:])
        refused = referee.why_not(case)
        draw = referee.draws(case)[0]
        try:
            if refused is not None:
                raise refused
            _check_finite(referee, case, draw)
            rows.append(Row(Outcome.PASSED, case.id, notes=tuple(filter(None, [referee.substitution(case)]))))
        except Stop as stop:
            rows.append(failed(referee, stop, case, draw, rung="run"))
        if sum(row.outcome is Outcome.FAILED for row in rows) >= FAULTS_BEFORE_GIVING_UP:
            return Findings(rows=rows, notes=[f"stopped after {FAULTS_BEFORE_GIVING_UP} failed cases"])
    return Findings(rows=rows)


def _start_small(referee: Referee, cases: tuple[Case, ...]) -> None:
    """Try small cases together; but never the first of all: in a call alone, work that is put off does not get done."""
    small = [case for case in cases if referee.why_not(case) is None and _touched(referee, case) <= SMALL_ELEMENTS]
    with contextlib.suppress(Stop):  # `trial` says it of the case where it belongs
        referee.start_trials(*((case, referee.draws(case)[0]) for case in small))


def _touched(referee: Referee, case: Case) -> int:
    """How many elements its inputs and outputs have."""
    call = call_of(referee.reference, case)
    places = [value for value in (*call.arguments.values(), *call.outputs.values()) if isinstance(value, TensorPlace)]
    return sum(math.prod(place.shape) for place in places)


def _check_finite(referee: Referee, case: Case, draw: str) -> None:
    trial, truth = referee.trial(case, draw), referee.truth(case, draw)
    for name, values in trial.outputs.items():
        if not is_float(values.dtype) or facts(values.dtype).bits <= 8:
            continue  # types of eight bits may saturate: the comparison of the next rung knows
        expected = torch.isfinite(truth.oracle[name].to(values.dtype))
        place = locate(torch.isfinite(values) != expected)
        if place is not None:
            text = place.text().replace("are bad", "are NaN or Inf on one side only")
            raise Stop("not-finite", f"output {name}: {text}")
