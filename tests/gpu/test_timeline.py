"""The host's timeline for real: calls, launches and works of the GPU on one axis, beside the traced regions."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kernelci import climbing
from kernelci.cold import FOLLOWED_CALLS
from kernelci.model import Row
from kernelci.reasons import Outcome
from kernelci.tracing.validating import faults
from kernelci.workbench.timeline import GPU_PROCESS, HOST_PROCESS

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ("softmax/triton", "softmax/cutedsl", "matmul/cuda")
pytestmark = [pytest.mark.gpu, pytest.mark.slow]
Traced = dict[str, tuple[Row, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    out = tmp_path_factory.mktemp("timeline")
    report, _ = climbing.climb(ROOT, ("trace",), kernels=KERNELS, out=out)
    found = {}
    for kernel in report.kernels:
        result = kernel.rung("trace")
        assert result is not None
        assert Outcome.PASSED is result.outcome, result.finding
        data = (out / result.artifacts[0].path).read_bytes()
        assert [] == faults(data)
        found[kernel.name] = (result.rows[0], json.loads(data)["traceEvents"])
    for row, _ in found.values():
        for note in row.notes:
            if note.startswith("no timeline of the host: "):
                pytest.skip(note)
    return found


def _value(row: Row, tag: str) -> float:
    return next(float(metric.value) for metric in row.metrics if metric.tag == tag)


def _named(events: list[dict[str, Any]], process: int, kind: str) -> list[dict[str, Any]]:
    return [each for each in events if each["ph"] == "X" and each["pid"] == process and each["cat"] == kind]


@pytest.mark.parametrize("name", KERNELS)
def test_every_call_launches_the_kernel_once(run: Traced, name: str) -> None:
    row, events = run[name]
    assert FOLLOWED_CALLS == len(_named(events, HOST_PROCESS, "call"))
    assert FOLLOWED_CALLS == len(_named(events, GPU_PROCESS, "kernel"))
    assert 1 == _value(row, "host_launches")
    assert 0 == _value(row, "launch_gap")


@pytest.mark.parametrize("name", KERNELS)
def test_a_launch_points_to_its_work(run: Traced, name: str) -> None:
    _, events = run[name]
    starts, ends = ({each["id"]: each["ts"] for each in events if each["ph"] == phase} for phase in ("s", "f"))
    assert starts.keys() == ends.keys()
    assert FOLLOWED_CALLS == len(starts)
    assert all(starts[number] <= ends[number] for number in starts)


@pytest.mark.parametrize("name", KERNELS)
def test_a_call_is_as_long_as_what_it_waits_for(run: Traced, name: str) -> None:
    row, events = run[name]
    works = [each["dur"] for each in _named(events, GPU_PROCESS, "kernel")]
    assert _value(row, "host_call") >= min(works) * 1e3
    assert 0 < _value(row, "host_share") < 1
    for metric in row.metrics:  # there is none where CUPTI has the two clocks apart
        assert metric.tag != "launch_latency" or 0 < float(metric.value) < _value(row, "host_call")


def test_a_kernel_without_regions_has_the_timeline_alone(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "kernels/softmax").mkdir(parents=True)
    shutil.copytree(ROOT / "references", root / "references")
    text = (ROOT / "kernels/softmax/triton.py").read_text()
    unnamed = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("# regions"))
    (root / "kernels/softmax/plain.py").write_text(unnamed)

    report, _ = climbing.climb(root, ("trace",), kernels=("softmax/plain",), out=tmp_path / "out")
    result = report.kernels[0].rung("trace")
    assert result is not None
    if result.outcome is Outcome.SKIPPED and result.rows and result.rows[0].finding is not None:
        pytest.skip(result.rows[0].finding.message)  # no CUPTI here
    assert Outcome.PASSED is result.outcome, result.finding
    assert result.rows[0].notes[0].startswith("the card names no regions")
    assert 1 == _value(result.rows[0], "host_launches")
    assert [] == faults((tmp_path / "out" / result.artifacts[0].path).read_bytes())
