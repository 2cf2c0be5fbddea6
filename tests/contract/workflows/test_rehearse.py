"""An agent's loop without a network: rehearse, read what it says, change the kernel, rehearse again."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import acting  # beside this file; conftest.py makes it importable
import pytest

from kernelci import publication

pytestmark = pytest.mark.slow
KERNEL = "kernels/softmax/mine.py"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A project with one reference, and a branch for the agent."""
    folder = tmp_path / "project"
    (folder / "references").mkdir(parents=True)
    (folder / "kernels" / "softmax").mkdir(parents=True)
    shutil.copy(acting.REPOSITORY / "references" / "softmax.py", folder / "references")
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


def test_wrong_then_feedback_then_green(repository: Path) -> None:
    right = (acting.REPOSITORY / "kernels" / "softmax" / "triton.py").read_text()
    wrong = right.replace('float("-inf"), 0.0)', "0.0, 0.0)")  # columns past the end count
    assert right != wrong

    code, comment, feedback = _rehearsed(repository, wrong)

    failure = feedback["kernels"][0]["first_failure"]
    assert (1, "failure") == (code, _block(comment).conclusion), comment
    assert ("softmax/mine", "FAILED", "wrong") == (
        feedback["kernels"][0]["name"], feedback["kernels"][0]["outcome"], failure["reason"],
    )  # fmt: skip
    assert failure["reproduce"].startswith("kernelci run softmax/mine")

    code, comment, feedback = _rehearsed(repository, right)

    assert (0, "success") == (code, _block(comment).conclusion), comment
    assert "PASSED" == feedback["kernels"][0]["outcome"]


def test_a_changed_judge_is_never_green(repository: Path) -> None:
    trace = repository.parent / "trace"
    (repository / "references" / "softmax.py").write_text(f"open({str(trace)!r}, 'w')\n")
    code, comment, _ = _rehearsed(repository, (acting.REPOSITORY / "kernels" / "softmax" / "triton.py").read_text())
    assert (1, "action_required", False) == (code, _block(comment).conclusion, trace.exists())
    assert "references/softmax.py" in comment


def _block(comment: str) -> publication.Block:
    block = publication.read(comment)
    assert block is not None, comment
    return block
