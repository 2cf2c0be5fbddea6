"""Traces for real: kernels of softmax, matmul and rmsnorm leave files that viewers open, and times that add up."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from kernelci import climbing
from kernelci.model import KernelReport, RungResult
from kernelci.reasons import Outcome
from kernelci.tracing.validating import faults

ROOT = Path(__file__).resolve().parents[2]
KERNELS = [
    f"{name}/{dsl}" for name in ("softmax", "matmul", "rmsnorm") for dsl in ("cuda", "tilelang", "triton", "cutedsl")
]
pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, KernelReport], Path]:
    out = tmp_path_factory.mktemp("trace")
    report, _ = climbing.climb(ROOT, ("trace",), kernels=tuple(KERNELS), out=out)
    return {kernel.name: kernel for kernel in report.kernels}, out


def traced(run: tuple[dict[str, KernelReport], Path], name: str) -> RungResult:
    found = run[0][name].rung("trace")
    assert found is not None
    assert Outcome.PASSED is found.outcome, found.finding
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_a_file_is_valid(run: Any, name: str) -> None:
    found = traced(run, name)
    assert found.artifacts
    assert [] == [fault for artifact in found.artifacts for fault in faults((run[1] / artifact.path).read_bytes())]


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_loads_computes_and_ends(run: Any, name: str) -> None:
    for row in traced(run, name).rows:
        tags = {metric.tag for metric in row.metrics}
        assert {"share:load", "share:compute", "share:epilogue"} <= tags, row.notes


@pytest.mark.parametrize("name", KERNELS)
def test_regions_and_gaps_are_the_lifetime(run: Any, name: str) -> None:
    for artifact in traced(run, name).artifacts:
        spans = [each for each in json.loads((run[1] / artifact.path).read_bytes())["traceEvents"] if each["ph"] == "X"]
        threads: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
        for span in spans:
            if span.get("cat") in ("lifetime", "region"):
                threads[span["pid"], span["tid"]].append(span)
        assert threads
        for found in threads.values():
            life, covered = _covered(found)
            assert covered == pytest.approx(life, rel=0.1, abs=0.05)


def _covered(spans: list[dict[str, Any]]) -> tuple[float, float]:
    """A thread's lifetime, and what its regions and the gaps between them come to, in µs."""
    lives = [span for span in spans if span["cat"] == "lifetime"]
    begin, total, at = lives[0]["ts"], 0.0, lives[0]["ts"]
    for span in sorted((span for span in spans if span["cat"] == "region"), key=lambda each: each["ts"]):
        total += max(0.0, span["ts"] + span["dur"] - at)
        at = max(at, span["ts"] + span["dur"])
    end = max(at, begin + lives[0]["dur"])
    return lives[0]["dur"], total + end - at


@pytest.mark.parametrize("name", KERNELS)
def test_multiprocessors_begin_within_the_call(run: Any, name: str) -> None:
    """Clocks are brought together: no track begins before 0, or lives longer than all of the call."""
    for row, artifact in zip(traced(run, name).rows, traced(run, name).artifacts, strict=True):
        span_us = next(float(metric.value) for metric in row.metrics if metric.tag == "span") / 1e3
        events = json.loads((run[1] / artifact.path).read_bytes())["traceEvents"]
        lives = [each for each in events if each.get("cat") == "lifetime"]
        assert all(0 <= each["ts"] and each["ts"] + each["dur"] <= span_us * 1.001 + 0.01 for each in lives)
