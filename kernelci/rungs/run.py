"""run: does it run at all? Every case once: right shape and dtype, every element written, nothing else touched, and
NaN or Inf only where the oracle has them."""

import torch

from kernelci.errors import Verdict
from kernelci.model import Row
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.rungs import Findings, Referee, failed, rung
from kernelci.workbench.location import locate
from kernelci.workbench.narrow import facts, is_float

FAULTS_BEFORE_GIVING_UP = 3


@rung("run", after=("compile",), needs=("device",))
def run(referee: Referee) -> Findings:
    """One row per case, with the first normal draw."""
    rows: list[Row] = []
    for case in referee.cases():
        refused = referee.why_not(case)
        draw = referee.draws(case)[0]
        try:
            if refused is not None:
                raise refused
            _check_finite(referee, case, draw)
            rows.append(Row(Outcome.PASSED, case.id, notes=tuple(filter(None, [referee.substitution(case)]))))
        except Verdict as verdict:
            rows.append(failed(referee, verdict, case, draw, rung="run"))
        if sum(row.outcome is Outcome.FAILED for row in rows) >= FAULTS_BEFORE_GIVING_UP:
            return Findings(rows=rows, notes=[f"stopped after {FAULTS_BEFORE_GIVING_UP} failed cases"])
    return Findings(rows=rows)


def _check_finite(referee: Referee, case: Case, draw: str) -> None:
    trial, truth = referee.trial(case, draw), referee.truth(case, draw)
    for name, values in trial.outputs.items():
        if not is_float(values.dtype) or facts(values.dtype).bits <= 8:
            continue  # types of eight bits may saturate: the comparison of the next rung knows
        expected = torch.isfinite(truth.oracle[name].to(values.dtype))
        place = locate(torch.isfinite(values) != expected)
        if place is not None:
            text = place.text().replace("are bad", "are NaN or Inf on one side only")
            raise Verdict("not-finite", f"output {name}: {text}")
