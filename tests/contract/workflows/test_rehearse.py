"""An agent's loop without a network: rehearse, read what it says, change the kernel, rehearse again."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import acting  # beside this file; conftest.py makes it importable
import pytest

from kernelci import publication

pytestmark = pytest.mark.slow
KERNEL = "kernels/softmax/mine.py"
REFERENCE = '''"""Softmax over the last axis."""
import torch
from kernelci.reference import bench, check, like

forbids = ("local memory",)  # values that don't fit into registers cost more than all the rest


def cases():
    for rows, cols in ((1, 1), (3, 127), (17, 100), (257, 1), (0, 128)):
        yield check(rows=rows, cols=cols, dtype="float16")
    yield bench("a router", rows=8192, cols=256, dtype="float16")


def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}


def outputs(case):
    return {"y": like("x")}


def reference(x):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def cost(case):
    return 5 * case.rows * case.cols
'''
GOOD = """# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# ///
import triton
import triton.language as tl


@triton.jit
def softmax_tile(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    result = powers / tl.sum(powers, axis=1)[:, None]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


def softmax(x, y):
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        softmax_tile[(triton.cdiv(rows, tile),)](x, y, rows, cols, tile, block, num_warps=4)
"""
LARGER = GOOD.replace("1024 // block", "4096 // block")
# Fewer registers a thread let more warps live at once; here the values no longer fit.
SLOW = LARGER.replace("num_warps=4", "num_warps=4, maxnreg=24")
WRONG = LARGER.replace("powers / tl.sum(powers", "powers / tl.max(powers")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A project with one reference and one kernel, and a branch for the agent."""
    folder = tmp_path / "project"
    (folder / "references").mkdir(parents=True)
    (folder / "kernels" / "softmax").mkdir(parents=True)
    (folder / "references" / "softmax.py").write_text(REFERENCE)
    (folder / KERNEL).write_text(GOOD)
    (folder / "kernelci.toml").write_text('seeds = 1\ntargets = ["sm_90a"]\n')
    acting.git(folder, "init", "--quiet")
    acting.commit(folder, "base")
    acting.git(folder, "checkout", "--quiet", "-b", "change")
    return folder


def _rehearsed(repository: Path, text: str) -> tuple[int, str, Any]:
    """The exit code, the comment, and the feedback that an agent reads of the same report."""
    (repository / KERNEL).write_text(text)
    acting.commit(repository, "try")
    out = repository.parent / "out"
    done = _kernelci(repository, "rehearse", "--base", "main", "--out", str(out))
    feedback = _kernelci(repository, "report", str(out), "--format", "feedback")
    return done.returncode, done.stdout, json.loads(feedback.stdout)


def _kernelci(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernelci", "--root", str(repository), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)


def test_wrong_then_feedback_then_slow_then_feedback_then_green(repository: Path) -> None:
    """Slow as far as a machine without a GPU can tell: by what the reference forbids in the machine code."""
    code, comment, feedback = _rehearsed(repository, WRONG)

    failure = feedback["kernels"][0]["first_failure"]
    assert (1, "failure") == (code, _block(comment).conclusion), comment
    assert ("softmax/mine", "correctness", "wrong") == (
        feedback["kernels"][0]["name"], failure["rung"], failure["reason"],
    )  # fmt: skip
    assert failure["reproduce"].startswith("kernelci run softmax/mine")

    code, comment, feedback = _rehearsed(repository, SLOW)

    failure = feedback["kernels"][0]["first_failure"]
    assert (1, "failure") == (code, _block(comment).conclusion), comment
    assert ("dump", "forbidden-opcode", "8192x256-fp16") == (failure["rung"], failure["reason"], failure["case"])
    assert ("local memory" in failure["diagnosis"], "STL" in failure["diagnosis"]) == (True, True)
    assert any(note.startswith("likely slower: spills") for note in failure["notes"]), failure["notes"]
    assert ["author"] == [action["who"] for action in feedback["actions"]]

    code, comment, feedback = _rehearsed(repository, LARGER)

    assert (0, "success") == (code, _block(comment).conclusion), comment
    assert ("PASSED", []) == (feedback["kernels"][0]["outcome"], feedback.get("actions", []))


def test_a_changed_judge_is_never_green(repository: Path) -> None:
    trace = repository.parent / "trace"
    (repository / "references" / "softmax.py").write_text(f"open({str(trace)!r}, 'w')\n")
    code, comment, _ = _rehearsed(repository, LARGER)
    assert (1, "action_required", False) == (code, _block(comment).conclusion, trace.exists())
    assert "references/softmax.py" in comment


def _block(comment: str) -> publication.Block:
    block = publication.read(comment)
    assert block is not None, comment
    return block
