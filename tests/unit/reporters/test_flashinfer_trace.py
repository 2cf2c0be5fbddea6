"""Traces in flashinfer-bench's form: which status, which figures, which workload; read by their own records."""

import importlib
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelci.model import Finding, KernelReport, Metric, Report, Row, RungResult, Unit, Verdict
from kernelci.reasons import Outcome, outcome_of
from kernelci.reporters import Context, get

PROJECT = Path(__file__).parents[2] / "problems" / "flashinfer_bench"
NAMES = ("all_green", "one_wrong", "compile_error", "all_skipped", "broken", "against_base", "first_times")
TIME = Metric("time", 5000.0, Unit.NANOSECONDS, "time")
FASTER = Metric("speedup_eager", 3.0, Unit.RATIO, "speedup")
ERRORS = (
    Metric("max_abs:output", 1e-3, Unit.NONE, "max abs error"),
    Metric("max_rel:output", "inf", Unit.NONE, "max rel"),
)


def _traces(report: Report, root: Path | None = None) -> list[dict[str, Any]]:
    text = get("flashinfer-trace").render(report, Context(root=root))
    return [json.loads(line) for line in str(text).splitlines()]


def _rung(name: str, row: Row) -> RungResult:
    return RungResult(name, row.outcome, finding=row.finding, rows=(row,))


def _report(reports: ModuleType, *rungs: RungResult) -> Report:
    kernel = KernelReport("rmsnorm_h96/fast", "rmsnorm_h96", "triton", "kernels/fast.json", "0" * 64, rungs)
    made: Report = reports.report((kernel,))
    return made


def _passed(reports: ModuleType) -> Report:
    correct = Row(Outcome.PASSED, "7-bf16", metrics=ERRORS)
    timed = Row(Outcome.PASSED, "7-bf16", metrics=(TIME, FASTER), verdict=Verdict.FASTER)
    return _report(reports, _rung("correctness", correct), _rung("benchmark", timed))


def _failed(reports: ModuleType, rung: str, reason: str) -> Report:
    finding = Finding(reason, "text")
    return _report(reports, _rung(rung, Row(outcome_of(reason), "7-bf16", finding=finding, metrics=ERRORS)))


def test_a_case_that_passed_and_was_timed(reports: ModuleType) -> None:
    (trace,) = _traces(_passed(reports))
    assert {
        "status": "PASSED",
        "correctness": {"max_relative_error": "Infinity", "max_absolute_error": 1e-3},
        "performance": {
            "latency_ms": pytest.approx(0.005),
            "reference_latency_ms": pytest.approx(0.015),
            "speedup_factor": 3.0,
        },
    } == {key: trace["evaluation"][key] for key in ("status", "correctness", "performance")}


def test_the_workload_is_the_definitions_own(reports: ModuleType, tmp_path: Path) -> None:
    shutil.copytree(PROJECT, tmp_path / "project")
    (trace,) = _traces(_passed(reports), tmp_path / "project")
    assert ({"batch_size": 7}, "rmsnorm_h96-1", {"type": "random"}) == (
        trace["workload"]["axes"],
        trace["workload"]["uuid"],
        trace["workload"]["inputs"]["weight"],
    )


def test_elsewhere_the_case_is_the_workload(reports: ModuleType) -> None:
    assert {"axes": {}, "inputs": {}, "uuid": "7-bf16"} == _traces(_passed(reports))[0]["workload"]


@pytest.mark.parametrize(
    ("rung", "reason", "status"),
    [
        ("correctness", "wrong", "INCORRECT_NUMERICAL"),
        ("run", "shape", "INCORRECT_SHAPE"),
        ("run", "dtype", "INCORRECT_DTYPE"),
        ("run", "hang", "TIMEOUT"),
        ("run", "crashed", "RUNTIME_ERROR"),
        ("compile", "compile-error", "COMPILE_ERROR"),
    ],
)
def test_status(reports: ModuleType, rung: str, reason: str, status: str) -> None:
    assert [status] == [trace["evaluation"]["status"] for trace in _traces(_failed(reports, rung, reason))]


def test_what_was_not_timed_is_left_out(reports: ModuleType) -> None:
    assert [] == _traces(_report(reports, _rung("correctness", Row(Outcome.PASSED, "7-bf16", metrics=ERRORS))))


@pytest.fixture
def their_trace() -> Any:
    """Their record of a trace, without the rest of their package."""
    found = importlib.util.find_spec("flashinfer_bench")
    if found is None:
        pytest.skip("flashinfer-bench is not installed")
    package = ModuleType("flashinfer_bench")
    package.__path__ = list(found.submodule_search_locations or [])
    before = sys.modules.get("flashinfer_bench")
    sys.modules["flashinfer_bench"] = package
    try:
        return importlib.import_module("flashinfer_bench.data.trace").Trace
    finally:
        if before is None:
            del sys.modules["flashinfer_bench"]


@pytest.mark.parametrize("name", NAMES)
def test_their_own_record_reads_it(reports: ModuleType, name: str, their_trace: Any) -> None:
    for trace in [
        *_traces(reports.ALL[name]()),
        *_traces(_passed(reports)),
        *_traces(_failed(reports, "run", "wrong")),
    ]:
        their_trace.model_validate(trace)
