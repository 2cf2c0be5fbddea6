"""What the script of paired comparisons says of the benchmarks that it hears of."""

from pathlib import Path
from types import ModuleType

import pytest

from kernelci import catalog
from kernelci.catalog import Kernel
from kernelci.config import Config
from kernelci.model import Finding, Metric, Row, RungResult, Unit
from kernelci.reasons import Outcome
from tests.conftest import Script

NOTE = "seconds: setting up and tuning 2.5, starting processes 1.5, windows 2.0 (20%), checking 1.0; in all 10.0"


@pytest.fixture(scope="module")
def paired(script: Script) -> ModuleType:
    """benchmarks/paired_speed.py."""
    return script("paired_speed")


@pytest.fixture(scope="module")
def kernels() -> tuple[Kernel, ...]:
    """This repository's own."""
    return catalog.scan(Path(__file__).resolve().parents[2], Config()).kernels


def _result(rung: str = "benchmark") -> RungResult:
    rows = tuple(
        Row(Outcome.PASSED, case, metrics=(Metric("blocks", blocks, Unit.COUNT, "blocks", ""),))
        for case, blocks in (("a", 4), ("b", 12))
    )
    return RungResult(rung, Outcome.PASSED, 10.0, rows=rows, notes=("another", NOTE))


def test_a_line_for_each_kernel_and_what_they_come_to(paired: ModuleType, kernels: tuple[Kernel, ...]) -> None:
    heard = paired.Heard()
    for kernel in kernels[:2]:
        heard(kernel, _result())
    line = f"| {kernels[0].name} | 10.0 | 2.5 | 1.5 | 0.0 | 0.0 | 2.0 | 1.0 | 0.0 | 0.0 | 0.0 | 4 to 12 | PASSED |"
    *_, said = heard.summary().splitlines()
    assert (line, True) == (heard.lines[0], said.startswith("2 kernels, 4 rows in 10."))
    assert said.endswith("windows are 40% of it.")


@pytest.mark.parametrize(
    "result", [_result("correctness"), RungResult("benchmark", Outcome.SKIPPED, finding=Finding("no-gpu", "no GPU"))]
)
def test_other_rungs_are_not_heard(paired: ModuleType, kernels: tuple[Kernel, ...], result: RungResult) -> None:
    heard = paired.Heard()
    heard(kernels[0], result)
    assert ([], 0) == (heard.lines, heard.rows)


def test_without_a_gpu_it_says_so(
    paired: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["paired_speed.py"])
    monkeypatch.setattr(paired, "find", lambda: type("None", (), {"is_gpu": False})())
    assert (3, "no GPU here\n") == (paired.main(), capsys.readouterr().err)
