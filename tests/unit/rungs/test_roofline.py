"""The roofline rung: rows from what the benchmark rung left, with hints from the rungs before."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelci.config import Config
from kernelci.errors import Stop
from kernelci.model import Finding, Metric, Row, RungResult, Unit
from kernelci.reasons import Outcome
from kernelci.reference import load
from kernelci.rungs import roofline

REFERENCE = """
from kernelci.reference import bench, check, like
def cases():
    yield check(rows=2, cols=5, dtype="float32")
    yield bench("long", rows=16384, cols=32768, dtype="float32")
    yield bench("other", rows=8, cols=8, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
def cost(case):
    return case.rows * case.cols
"""
BYTES = 2 * 4 * 16384 * 32768
CASE = "16384x32768-fp32"


def _metric(tag: str, value: float, unit: Unit = Unit.COUNT) -> Metric:
    return Metric(tag, value, unit, tag)


def _timed(ns: float) -> Row:
    return Row(Outcome.PASSED, CASE, metrics=(_metric("time", ns, Unit.NANOSECONDS),))


MEASURED = (_metric("copy", 4e12), _metric("matmul:float32", 5e13), _metric("empty", 1500.0))
LOST = Row(Outcome.INVALID, "8x8-fp32", finding=Finding("not-measured", "no block counts"))


@pytest.fixture
def referee(tmp_path: Path) -> Any:
    """What the rung needs of a referee, on an H200 whose copy reaches 4 TB/s."""
    (tmp_path / "add.py").write_text(REFERENCE, encoding="utf-8")
    return SimpleNamespace(
        reference=load(tmp_path / "add.py"),
        config=Config(),
        device=SimpleNamespace(name="NVIDIA H200", target="sm_90a"),
        out=tmp_path,
        kernel=SimpleNamespace(name="add/plain"),
        climbed={
            "benchmark": RungResult("benchmark", Outcome.PASSED, rows=(_timed(BYTES / 2e12 * 1e9),), metrics=MEASURED)
        },
    )


def test_a_row_says_how_close_it_is(referee: Any) -> None:
    (row,) = roofline.place_all(referee).rows
    expected = "go on: 50 % of a copy's bandwidth, bound by memory; up to 1.8 times faster before the limit"
    assert (CASE, (expected,)) == (row.case, row.notes)
    values = {metric.tag: metric.value for metric in row.metrics}
    assert pytest.approx({"attained": 0.5, "of_datasheet": 2 / 4.8, "limit": BYTES / 4e3, "intensity": 1 / 8}) == values


def test_machine_code_and_profile_give_hints(referee: Any) -> None:
    built = (_metric("load_bits", 32), _metric("spills", 12))
    referee.climbed["dump"] = RungResult(
        "dump",
        Outcome.PASSED,
        rows=(Row(Outcome.PASSED, "8x8-fp32", "sm_90a", metrics=built), Row(Outcome.PASSED, CASE, "sm_80")),
    )
    assert "registers spill (12 loads and stores of the stack); loads are 32 bits wide" in _note(referee)
    found = Row(Outcome.PASSED, CASE, metrics=(_metric("dram_bytes", 2 * BYTES),), notes=("finding: uncoalesced",))
    referee.climbed["profile"] = RungResult("profile", Outcome.PASSED, rows=(found,))
    assert "DRAM moved 2 times the formula's bytes" in _note(referee)
    assert "once; uncoalesced; registers spill" in _note(referee)


def _note(referee: Any) -> str:
    return roofline.place_all(referee).rows[0].notes[0]


def test_ceilings_stand_beside_the_datasheets(referee: Any) -> None:
    found = {metric.tag: metric.value for metric in roofline.place_all(referee).metrics}
    assert {"copy": 4e12, "sheet_copy": 4.8e12, "matmul:float32": 5e13} == {
        tag: value for tag, value in found.items() if tag != "sheet_matmul:float32"
    }


def test_a_chart_is_left(referee: Any, tmp_path: Path) -> None:
    (artifact,) = roofline.place_all(referee).artifacts
    assert ("roofline/add/plain.svg", "svg") == (artifact.path, artifact.kind)
    assert (tmp_path / artifact.path).read_text().startswith("<svg")


def test_without_a_time_there_is_no_roofline(referee: Any) -> None:
    referee.climbed["benchmark"] = RungResult("benchmark", LOST.outcome, finding=LOST.finding, rows=(LOST,))
    with pytest.raises(Stop, match="no bench case"):
        roofline.place_all(referee)


def test_a_gpu_that_is_not_in_the_table(referee: Any) -> None:
    referee.device.name = "Voodoo 2"
    (row,) = roofline.place_all(referee).rows
    assert "of_datasheet" not in {metric.tag for metric in row.metrics}
