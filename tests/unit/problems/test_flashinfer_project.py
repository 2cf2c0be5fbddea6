"""Ten definitions with solutions in flashinfer-bench's form, in the folders of its datasets."""

import shutil
from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.model import KernelReport

PROJECT = Path(__file__).parents[2] / "problems" / "flashinfer_bench"
NAMES = sorted(path.stem for path in (PROJECT / "definitions").rglob("*.json"))


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelReport]:
    """The climbs of all solutions by name."""
    root = tmp_path_factory.mktemp("flashinfer") / "project"
    shutil.copytree(PROJECT, root)
    options = config.load(root, {}, {"cache": str(root / "cache"), "targets": ("sm_90a",)})
    found = catalog.scan(root, options)
    report = ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", ("correctness",)))
    return {kernel.name: kernel for kernel in report.kernels}


def test_there_are_ten() -> None:
    assert 10 == len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_right_solution(climbed: dict[str, KernelReport], name: str) -> None:
    assert ("PASSED", None) == (climbed[f"{name}/right"].outcome, climbed[f"{name}/right"].stopped_at)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_solution(climbed: dict[str, KernelReport], name: str) -> None:
    found = climbed[f"{name}/wrong"].stopped_at
    assert found is not None
    assert found.finding is not None
    assert ("correctness", "wrong") == (found.rung, found.finding.reason)
