"""The records of results.json can't contradict themselves."""

import math

import pytest

from kernelci.model import (
    SCHEMA_VERSION,
    Environment,
    Finding,
    KernelReport,
    Report,
    Row,
    RungResult,
    number,
    worst,
)
from kernelci.reasons import Outcome

WRONG = Finding("wrong", "text")


@pytest.mark.parametrize("record", [Row, lambda outcome, **more: RungResult("run", outcome, **more)])
@pytest.mark.parametrize(
    ("outcome", "finding"),
    [
        (Outcome.PASSED, WRONG),
        (Outcome.FAILED, None),
        (Outcome.SKIPPED, None),
        (Outcome.SKIPPED, WRONG),
        (Outcome.BROKEN, WRONG),
        (Outcome.FAILED, Finding("no-gpu", "text")),
    ],
)
def test_impossible_state_is_refused(record: type, outcome: Outcome, finding: Finding | None) -> None:
    with pytest.raises(ValueError, match=r"finding|means"):
        record(outcome=outcome, finding=finding)


@pytest.mark.parametrize("reason", ["", "nonsense", "configuration"])
def test_finding_needs_a_known_reason(reason: str) -> None:
    with pytest.raises(ValueError, match="unknown reason"):
        Finding(reason, "text")


@pytest.mark.parametrize(
    ("value", "form"), [(1.5, 1.5), (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (0, 0.0)]
)
def test_number(value: float, form: float | str) -> None:
    assert form == number(value)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], "SKIPPED"),
        (["SKIPPED"], "SKIPPED"),
        (["PASSED", "SKIPPED"], "PASSED"),
        (["PASSED", "INVALID"], "INVALID"),
        (["INVALID", "FAILED", "PASSED"], "FAILED"),
        (["FAILED", "BROKEN"], "BROKEN"),
    ],
)
def test_worst(outcomes: list[str], expected: str) -> None:
    assert expected == worst([Outcome(outcome) for outcome in outcomes])


def _rung(name: str, reason: str = "") -> RungResult:
    from kernelci.reasons import outcome_of

    return (
        RungResult(name, outcome_of(reason), finding=Finding(reason, ""))
        if reason
        else RungResult(name, Outcome.PASSED)
    )


def _kernel(*rungs: RungResult) -> KernelReport:
    return KernelReport("softmax/triton", "softmax", "triton", "kernels/softmax/triton.py", "0" * 64, rungs)


def test_stopped_at_is_the_first_that_blocks() -> None:
    kernel = _kernel(
        _rung("precheck"), _rung("run", "no-gpu"), _rung("correctness", "wrong"), _rung("dump", "rung-error")
    )
    assert kernel.rung("correctness") == kernel.stopped_at


def test_nothing_stopped_what_was_only_skipped() -> None:
    assert _kernel(_rung("precheck"), _rung("run", "no-gpu")).stopped_at is None


def test_rung_by_name() -> None:
    kernel = _kernel(_rung("precheck"))
    assert ("precheck", None) == (kernel.rungs[0].rung, kernel.rung("run"))


@pytest.mark.parametrize(("reason", "exit_code"), [("", 0), ("wrong", 1), ("no-gpu", 3), ("reference", 4)])
def test_exit_code(reason: str, exit_code: int) -> None:
    report = Report(SCHEMA_VERSION, "0", "", 0.0, Environment("", ""), (_kernel(_rung("run", reason)),))
    assert exit_code == report.exit_code


@pytest.mark.parametrize(
    ("rungs", "expected"),
    [
        ({"precheck": "", "compile": "", "run": "no-gpu", "correctness": "no-gpu"}, Outcome.SKIPPED),
        ({"precheck": "", "compile": "", "run": "not-requested", "correctness": "not-requested"}, Outcome.PASSED),
        ({"precheck": "", "compile": "", "run": "", "correctness": "not-requested"}, Outcome.PASSED),
        ({"precheck": "", "compile": "", "run": "", "correctness": "interrupted"}, Outcome.SKIPPED),
        ({"precheck": "", "compile": "target", "dump": "target", "run": "not-requested"}, Outcome.SKIPPED),
        ({"precheck": "", "compile": "not-requested"}, Outcome.PASSED),
        ({"precheck": "", "compile": "needs-data", "run": "", "correctness": ""}, Outcome.PASSED),
        ({"precheck": "", "compile": "compile-error", "run": "earlier-rung"}, Outcome.FAILED),
        ({"precheck": "", "compile": "", "run": "cost", "correctness": "cost", "benchmark": ""}, Outcome.PASSED),
        ({"precheck": "", "compile": "", "run": "cost", "correctness": "cost", "benchmark": "no-gpu"}, Outcome.SKIPPED),
    ],
)
def test_a_kernel_of_which_nothing_asked_for_was_executed_is_skipped(rungs: dict[str, str], expected: Outcome) -> None:
    assert expected == _kernel(*(_rung(name, reason) for name, reason in rungs.items())).outcome


def test_no_kernel_is_never_green() -> None:
    assert 3 == Report(SCHEMA_VERSION, "0", "", 0.0, Environment("", ""), ()).exit_code
