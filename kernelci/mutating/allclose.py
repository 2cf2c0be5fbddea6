"""What public harnesses check, for comparison: `torch.allclose(rtol=1e-2, atol=1e-2)` on one normal draw, nothing else.

It judges the same calls as the rungs do. Where those were stopped by a fault that allclose does not look for (an access
out of bounds, an input overwritten, an element never written), it calls once more and looks at the values alone.
"""

from typing import Any

import torch

from kernelci.errors import Stop
from kernelci.model import Finding, Row
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.rungs import Findings, Rung

TOLERANCE = 1e-2
# Found by guard zones, hashes and poison, which a plain comparison of values has none of.
_UNSEEN = ("out-of-bounds", "input-changed", "unwritten")


def check(referee: Any) -> Findings:
    """A row per case until the first that fails; the first row is the typical case, which most harnesses stop at."""
    rows: list[Row] = []
    for case in _typical_first(referee):
        rows.append(_row(referee, case))
        if rows[-1].outcome is not Outcome.PASSED:
            break
    return Findings(rows=rows)


def _typical_first(referee: Any) -> list[Case]:
    """The cases that run here: first the first bench case, or without one the largest check case."""
    cases = [case for case in referee.cases() if referee.why_not(case) is None]
    bench = [case for case in cases if case.kind == "bench"]
    typical = bench[0] if bench else max(cases, key=lambda case: _written(referee, case), default=None)
    return sorted(cases, key=lambda case: case is not typical)


def _written(referee: Any, case: Case) -> int:
    return sum(spec.elements for spec in referee.outputs(case, referee.draws(case)[0]).values())


def _row(referee: Any, case: Case) -> Row:
    draw = referee.draws(case)[0]
    try:
        outputs = _outputs(referee, case, draw)
    except Stop as stop:
        return Row(Outcome.FAILED, case.id, draw=draw, finding=Finding("wrong", f"{stop.reason}: {stop.message[:900]}"))
    oracle = referee.truth(case, draw).oracle
    for name, values in outputs.items():
        if not close(values, oracle[name]):
            return Row(Outcome.FAILED, case.id, draw=draw, finding=Finding("wrong", f"{name} is not close"))
    return Row(Outcome.PASSED, case.id, draw=draw)


def close(values: torch.Tensor, oracle: torch.Tensor) -> bool:
    """`torch.allclose` against the oracle rounded to the output's dtype; integers and booleans must be equal."""
    expected = oracle.to(values.dtype)
    if not values.is_floating_point():
        return bool(torch.equal(values, expected))
    return bool(torch.allclose(values, expected, rtol=TOLERANCE, atol=TOLERANCE))


def _outputs(referee: Any, case: Case, draw: str) -> dict[str, torch.Tensor]:
    try:
        found = referee.trial(case, draw).outputs
    except Stop as stop:
        if stop.reason not in _UNSEEN:
            raise
        found = referee.plainly(case, draw)
    return dict(found)


RUNG = Rung("allclose", check, after=("compile",), needs=("device",))
