"""KernelBench problems on a GPU: right and wrong solutions in Triton, in CUDA C++ that `load_inline` builds, and one of
each in TileLang and CuTe DSL where those are installed."""

from importlib.util import find_spec

import pytest

from kernelci import catalog, config, ladder
from kernelci.model import KernelReport
from tests.problems.kernelbench_gpu import laid, solutions

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
LANES = 12
PACKAGES = {"tilelang": "tilelang", "cutedsl": "cutlass"}


def _installed(name: str) -> bool:
    package = PACKAGES.get(name.partition("/")[2].partition("_")[0])
    return package is None or find_spec(package) is not None


NAMES = sorted(name for name in solutions() if _installed(name))


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelReport]:
    """The climbs of all by name."""
    root = laid(tmp_path_factory.mktemp("kernelbench") / "project")
    options = config.load(root, {}, {"cache": str(root / "cache"), "lanes": LANES, "compile_timeout_s": 300.0})
    found = catalog.scan(root, options)
    report = ladder.climb(found, options, ladder.Plan(found.select(tuple(NAMES)), root / "out", ("correctness",)))
    return {kernel.name: kernel for kernel in report.kernels}


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_right")])
def test_a_right_solution(climbed: dict[str, KernelReport], name: str) -> None:
    stopped = climbed[name].stopped_at
    assert ("PASSED", None) == (climbed[name].outcome, stopped), stopped and stopped.finding


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_wrong")])
def test_a_wrong_solution(climbed: dict[str, KernelReport], name: str) -> None:
    stopped = climbed[name].stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    assert ("correctness", "wrong") == (stopped.rung, stopped.finding.reason), stopped.finding
