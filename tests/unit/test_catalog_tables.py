"""The tables of a recorded run, from a run that is made up."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelci import results
from kernelci.model import Metric, Report, Row, RungResult, Unit
from kernelci.reasons import Outcome

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "catalog_tables.py"
NS, P = Unit.NANOSECONDS, Outcome.PASSED


@pytest.fixture(scope="module")
def tables(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("catalog_tables")


def timed(case: str, time: float, wall: float, ledger: float) -> Row:
    """A bench row of 400 MB and 1 GFLOP; the referee's interval is 1 % to each side."""
    metrics = (
        Metric("time", time, NS, "time", "", time, time),
        Metric("time_wall", wall, NS, "wall", "", 0.99 * wall, 1.01 * wall),
        Metric("sm_cycles", 2 * time, Unit.COUNT, "SM cycles"),
        Metric("bandwidth", 4e8 / time * 1e9, Unit.BYTES_PER_SECOND, "bandwidth"),
        Metric("flops", 1e9 / time * 1e9, Unit.FLOP_PER_SECOND, "rate"),
        Metric("ledger_time", ledger, NS, "ledger"),
    )
    return Row(P, case, "sm_90a", metrics=metrics)


@pytest.fixture
def report(reports: Any) -> Report:
    """Two rows, one of which all others agree with; the second has no profile."""
    rows = (timed("large", 100_000.0, 100_400.0, 101_000.0), timed("small", 5_000.0, 5_500.0, 5_400.0))
    looked = Row(
        P,
        "large",
        metrics=(
            Metric("profile_time", 103_000.0, NS, "time in the profile"),
            Metric("sm_cycles", 202_000.0, Unit.COUNT, "SM cycles"),
            Metric("dram_bytes", 4.1e8, Unit.BYTES, "DRAM bytes"),
        ),
    )
    placed = [
        Row(P, case, notes=(text,), metrics=(
            Metric("attained", share, Unit.FRACTION, "attained", f"bound by {bound}; {text}"),
            Metric("limit", 1e5 * share, NS, "limit"),
            Metric("intensity", 2.5, Unit.NONE, "FLOP/byte"),
        ))
        for case, share, bound, text in (("large", 0.95, "memory", "stop: 95 %"), ("small", 0.4, "latency", "go on"))
    ]  # fmt: skip
    ceilings = (
        Metric("copy", 4.2e12, Unit.BYTES_PER_SECOND, "copy"),
        Metric("sheet_copy", 4.8e12, Unit.BYTES_PER_SECOND, "copy, datasheet"),
        Metric("matmul:bfloat16", 7e14, Unit.FLOP_PER_SECOND, "matmul"),
    )
    rungs = (
        RungResult("benchmark", P, rows=rows),
        RungResult("profile", P, rows=(looked,)),
        RungResult("roofline", P, rows=tuple(placed), metrics=ceilings),
    )
    found: Report = reports.report((reports.kernel("softmax/cuda", *rungs),))
    return found


def test_clocks(tables: Any, report: Report) -> None:
    found = tables.clocks(list(tables.lines(report)))
    assert found.rows[2:] == (
        "| softmax/cuda | large | 100 µs | 100 µs ± 1 % | -0.40 % | 101 µs | +1.00 % |",
        "| softmax/cuda | small | 5 µs | 5.5 µs ± 1 % | -9.09 % | 5.4 µs | +8.00 % |",
    )
    assert "referee's interval: 1 of 2 rows; the ledger's sum within 3 % of the time: 1 of 2 rows." in found.goal


def test_a_profile_against_the_benchmark_and_the_formula(tables: Any, report: Report) -> None:
    found = tables.profiles(list(tables.lines(report)))
    assert found.rows[2:] == (
        "| softmax/cuda | large | 100 µs | 103 µs | +3.00 % | +1.00 % | 391 MiB | 381 MiB | 102.5 % |",
    )
    assert "in SM cycles: 1 of 1 rows; in time, of those that are bound by memory and take 20 µs: 1 of 1" in found.goal


def test_roofline_with_its_ceilings(tables: Any, report: Report) -> None:
    found = tables.roofline(report, list(tables.lines(report)))
    assert found.rows[2:] == (
        "| softmax/cuda | large | 2.5 | 95 % |  | 100 µs | 95 µs | memory | stop: 95 % |",
        "| softmax/cuda | small | 2.5 | 40 % |  | 5 µs | 40 µs | latency | go on |",
    )
    assert "copy 4.2 TB/s (4.8 TB/s by the datasheet), matmul 700 TFLOP/s" in found.text


def test_the_chart_has_a_point_for_each_case(tables: Any, report: Report) -> None:
    drawn = tables.chart(report)
    assert 2 == drawn.count("<title>softmax/cuda ")


def test_a_run_without_a_gpu_has_no_tables(tables: Any, reports: Any) -> None:
    text = tables.section(reports.all_green())
    assert "0 rows" in text
    assert "|" not in text
    assert "" == tables.chart(reports.all_green())


def test_the_script_prints_what_it_finds(tmp_path: Path, report: Report) -> None:
    results.write(report, tmp_path)
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ["### Clocks", "### Nsight Compute against the benchmark", "### Roofline"] == [
        line for line in done.stdout.splitlines() if line.startswith("###")
    ]


def test_a_file_that_is_no_report_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{")
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (1, 1) == (done.returncode, len(done.stderr.splitlines()))
