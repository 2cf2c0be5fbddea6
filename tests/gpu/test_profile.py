"""Nsight Compute for real, around a kernel of this repository: its report is read, its time is the benchmark's."""

from pathlib import Path

import pytest

from kernelci import climbing
from kernelci.model import KernelReport
from kernelci.workbench import profiler

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(profiler.find() is None, reason="no ncu here"),
]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> KernelReport:
    """The softmax in Triton with its longest row under the profiler."""
    out = tmp_path_factory.mktemp("profile")
    rungs = ("roofline", "profile")
    report, _ = climbing.climb(ROOT, rungs, kernels=("softmax/triton",), case="65536x2048-bf16", profile="all", out=out)
    return report.kernels[0]


def test_a_profile_has_the_figures_that_matter(kernel: KernelReport) -> None:
    found = kernel.rung("profile")
    assert found is not None
    if found.finding is not None and found.finding.reason == "no-counters":
        pytest.skip(found.finding.message)
    assert found.finding is None, found.finding
    tags = {metric.tag for metric in found.rows[0].metrics}
    assert {"profile_time", "dram_bytes", "dram_use", "sm_use", "achieved_occupancy"} <= tags, sorted(tags)
    assert any(tag.startswith("stall_") for tag in tags), sorted(tags)


def test_dram_bytes_are_those_of_the_formula(kernel: KernelReport) -> None:
    found = kernel.rung("roofline")
    assert found is not None
    shares = [float(metric.value) for metric in found.rows[0].metrics if metric.tag == "dram_share"]
    assert all(0.85 <= share <= 1.15 for share in shares), shares
