"""What the comparison of several GPUs with one says of two reports, and how it takes its seconds."""

import math
import time
from pathlib import Path
from typing import Any

import pytest

from kernelci.model import SCHEMA_VERSION, Environment, Finding, KernelReport, Metric, Report, Row, RungResult, Unit
from kernelci.reasons import Outcome
from tests.conftest import load

ROOT = Path(__file__).resolve().parents[2]


TWO = load(ROOT / "benchmarks" / "two_gpus.py", "two_gpus")


def _report(*rows: Row, seconds: float = 30.0) -> Report:
    environment = Environment("Linux x86_64", "3.12", "NVIDIA H200", "sm_90a")
    rung = RungResult("benchmark", Outcome.PASSED, 5.0, rows=rows)
    kernels = (KernelReport("softmax/triton", "softmax", "triton", "a.py", "0", (rung,)),)
    return Report(SCHEMA_VERSION, "1", "2026-01-01T00:00:00+00:00", seconds, environment, kernels)


def _row(case: str, ns: float, half: float = 0.0) -> Row:
    metric = Metric("time", ns, Unit.NANOSECONDS, "time", "", ns * (1 - half), ns * (1 + half))
    return Row(Outcome.PASSED, case, metrics=(metric,))


@pytest.mark.parametrize(
    ("several", "one", "difference", "same"),
    [
        (_row("a", 1004.0), _row("a", 1000.0), 0.004, True),
        (_row("a", 1006.0), _row("a", 1000.0), 0.006, False),
        (_row("a", 1006.0, 0.003), _row("a", 1000.0, 0.003), 0.006, True),
    ],
)
def test_times_may_differ_by_floor_and_intervals(several: Row, one: Row, difference: float, same: bool) -> None:
    (found,) = TWO.compared(_report(several), _report(one))
    assert (pytest.approx(difference), same) == (found.difference, found.same)


def test_a_row_without_a_time_is_not_the_same() -> None:
    refused = Row(Outcome.INVALID, "a", finding=Finding("clocks-disagree", "no"))
    (found,) = TWO.compared(_report(refused), _report(_row("a", 1000.0)))
    assert ("softmax/triton a", math.inf, False, "clocks-disagree") == (
        found.row, found.difference, found.same, found.why
    )  # fmt: skip


def test_a_row_that_one_lacks_is_told() -> None:
    assert [("softmax/triton a", ""), ("softmax/triton b", "no row")] == [
        (row.row, row.why) for row in TWO.compared(_report(_row("a", 1.0)), _report(_row("a", 1.0), _row("b", 1.0)))
    ]


def test_seconds_of_what_needs_quiet() -> None:
    heard: Any = TWO.Quiet()
    assert (0.0, 0.0) == (heard.quiet_s, heard.rungs_s)
    for rung, seconds in (("correctness", 100.0), ("benchmark", 3.0), ("benchmark", 2.0)):
        heard(None, RungResult(rung, Outcome.PASSED, seconds))
    finding = Finding("earlier-rung", "no")
    heard(None, RungResult("benchmark", Outcome.SKIPPED, 50.0, finding=finding))
    assert 5.0 == heard.rungs_s
    assert 3.0 == pytest.approx(heard.quiet_s, abs=1.0)
    assert heard.quiet_s < time.monotonic()


def test_what_is_printed() -> None:
    several, one = _report(_row("a", 1000.0), seconds=20.0), _report(_row("a", 1001.0))
    found = TWO.table(TWO.compared(several, one), TWO.Climbed(several, 11.0, 20.0), TWO.Climbed(one, 20.0, 19.0), 2)
    assert found == (
        "| row | one GPU | 2 GPUs | difference | may be | |\n"
        "| :-- | --: | --: | --: | --: | :-- |\n"
        "| softmax/triton a | 1 µs | 1 µs | -0.10% | 0.50% | same |\n"
        "\n"
        "| GPUs | measuring | its rungs, added | whole run |\n"
        "| --: | --: | --: | --: |\n"
        "| 1 | 20.0 s | 19.0 s | 30.0 s |\n"
        "| 2 | 11.0 s | 20.0 s | 20.0 s |\n"
        "\n"
        "2 GPUs measure in 55% of the time of one."
    )
