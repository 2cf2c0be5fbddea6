"""flashinfer-bench's definitions on a GPU: right and wrong solutions in Triton, and in CUDA C++ that torch builds."""

import shutil
from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.model import KernelReport

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
PROJECT = Path(__file__).parents[1] / "problems" / "flashinfer_bench"
LANES = 12
SOLUTIONS = [path for folder in ("solutions", "gpu") for path in sorted((PROJECT / folder).rglob("*.json"))]
NAMES = [f"{path.parent.name}/{path.stem}" for path in SOLUTIONS]


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelReport]:
    """The climbs of all by name."""
    root = tmp_path_factory.mktemp("flashinfer") / "project"
    shutil.copytree(PROJECT, root)
    shutil.copytree(root / "gpu", root / "solutions", dirs_exist_ok=True)
    options = config.load(root, {}, {"cache": str(root / "cache"), "lanes": LANES, "compile_timeout_s": 300.0})
    found = catalog.scan(root, options)
    report = ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", ("correctness",)))
    return {kernel.name: kernel for kernel in report.kernels}


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("right")])
def test_a_right_solution(climbed: dict[str, KernelReport], name: str) -> None:
    stopped = climbed[name].stopped_at
    assert ("PASSED", None) == (climbed[name].outcome, stopped), stopped and stopped.finding


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("wrong")])
def test_a_wrong_solution(climbed: dict[str, KernelReport], name: str) -> None:
    stopped = climbed[name].stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    assert ("correctness", "wrong") == (stopped.rung, stopped.finding.reason), stopped.finding
