"""What a benchmark says where it can't measure: each line of bad input has an outcome and a message of its own.

Elsewhere: no permission for counters (test_duel, test_profile, test_doctor_gpu), a base that is no commit or lacks the
kernel (test_basing), a side that fails (test_duel), too little memory for all slots (test_timing).
"""

from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.errors import Stop
from kernelci.model import Report
from kernelci.reasons import Outcome
from kernelci.reference import Cost
from kernelci.workbench import contest, device, figures
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Block
from kernelci.workbench.nvml import Sampled

COST = Overhead(30_000.0, 29_000.0, 31_000.0, 1_000.0, 5_000.0, 400.0)
CALIBRATION = Calibration(4e12, COST, {}, 5e12, {}, 2**12)
REFERENCE = """
from kernelci.reference import bench, check, like
def cases():
    yield check(n=5, dtype="float32")
    yield bench("much", n=50, dtype="float32")
def inputs(case, draw): return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case): return {"y": like("x")}
def reference(x): return x + 1
def cost(case): return case.n
"""
KERNEL = """# /// script
# [tool.kernelci]
# reference = "add"
# backend = "triton"
# entry = "add"
# targets = ["sm_80"]
# ///
import triton
import triton.language as tl


@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0) + 1, mask=at < n)


def add(x, y):
    add_one[(1,)](x, y, x.numel(), 64)
"""


def _climb(root: Path) -> Report:
    for place, text in (("references/add.py", REFERENCE), ("kernels/add/plain.py", KERNEL)):
        (root / place).parent.mkdir(parents=True)
        (root / place).write_text(text, encoding="utf-8")
    options = config.load(root, {}, {"cache": str(root / "cache")})
    found = catalog.scan(root, options)
    return ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", ("benchmark",)))


def test_no_gpu(tmp_path: Path) -> None:
    if device.find().is_gpu:
        pytest.skip("there is one")
    timed = _climb(tmp_path).kernels[0].rung("benchmark")
    assert timed is not None
    assert timed.finding is not None
    assert (Outcome.SKIPPED, "no-gpu") == (timed.outcome, timed.finding.reason)
    assert device.why_no_gpu() == timed.finding.message


def test_a_driver_that_does_not_fit_is_no_missing_gpu(tmp_path: Path) -> None:
    assert "no GPU on this machine" == device.why_no_gpu(tmp_path)
    (tmp_path / "nvidia0").touch()
    (tmp_path / "nvidiactl").touch()
    said = device.why_no_gpu(tmp_path)
    assert said.startswith(f"torch sees no GPU, though {tmp_path}/nvidia0 is there")
    assert "fits the driver" in said


def _blocks(state: Sampled, count: int, usual: int) -> list[Block]:
    """So many blocks in which the GPU was in this state, and usual ones."""
    steady = Sampled(9, 1.98e9)
    windows = {"head": [Window(1000, COST.ns + 2e7, COST.device_ns + 2e7)] * 2}
    blocks = [Block(windows, state=state) for _ in range(count)]
    blocks += [Block(windows, state=steady) for _ in range(usual)]
    contest.drop(blocks)
    return blocks


STATES = [
    (Sampled(9, 1.98e9, foreign=(4711,)), "another process (pid 4711) on the GPU"),
    (Sampled(9, 1.98e9, throttle=0x40), "hardware thermal throttle"),
    (Sampled(9, 1.2e9), "clocks fell to 61 % of the usual 1980 MHz"),
]


@pytest.mark.parametrize(("state", "said"), STATES, ids=["taken", "hot", "clocks that fall"])
def test_blocks_of_a_disturbed_gpu_do_not_count(state: Sampled, said: str) -> None:
    blocks = _blocks(state, 2, 5)
    assert [said] * 2 + [""] * 5 == [block.dropped for block in blocks]
    assert 20_000.0 == figures.checked_time(blocks, "head", CALIBRATION, Cost(0.0), "float32").ns


@pytest.mark.parametrize(("state", "said"), STATES[:2], ids=["taken", "hot"])
def test_a_gpu_that_is_disturbed_all_the_time_measures_nothing(state: Sampled, said: str) -> None:
    with pytest.raises(Stop) as caught:
        figures.checked_time(_blocks(state, 4, 0), "head", CALIBRATION, Cost(0.0), "float32")
    assert ("not-measured", f"no block of head counts: {said}") == (caught.value.reason, caught.value.message)
