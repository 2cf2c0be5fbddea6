"""A night on a GPU for real: times in the history, and the commit that made a kernel slower, found by pairs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelci.nightly import BRANCH, dashboard
from kernelci.nightly.branch import Branch
from kernelci.nightly.series import load

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
KERNEL = "kernels/softmax/triton.py"
CASE = "8192x256-fp32"
TWICE = """

_once = softmax


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    _once(x, y)
    _once(x, y)
"""


def _git(root: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *settings, "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _kernelci(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernelci", "--root", str(root), *arguments]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel, then something else, then the kernel at half its speed, then something else."""
    root = tmp_path_factory.mktemp("night") / "project"
    for name in ("references/softmax.py", KERNEL):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    _git(root.parent, "init", "--quiet", str(root))
    for number, text in enumerate(("", "", TWICE, "\n# the same again\n")):
        with (root / KERNEL).open("a") as file:
            file.write(text)
        (root / "README.md").write_text(f"{number}\n")
        _git(root, "add", "--all")
        _git(root, "commit", "--quiet", "--message", f"{number}")
    return root


def test_a_night_has_times(project: Path, tmp_path: Path) -> None:
    remote = tmp_path / "history.git"
    _git(tmp_path, "init", "--quiet", "--bare", str(remote))

    done = _kernelci(
        project, "nightly", "--rungs", "benchmark", "--history", str(remote), "--out", str(tmp_path / "out")
    )

    assert done.stdout.startswith("pushed nights/"), done.stderr[-3000:]
    Branch(str(remote), BRANCH).write(tmp_path / "history")
    found = {series.case: series for series in load(tmp_path / "history")}
    night = found[CASE]
    known = (night.time_ns, night.registers, night.code_bytes, night.error_ratio, night.copy, night.of_ceiling)
    assert [] == [column for column in known if not column[0]]
    (overview, _) = dashboard.build(tmp_path / "history", tmp_path / "site")
    assert "No row has a time" not in overview.read_text()


def test_the_commit_that_made_it_slower_is_found(project: Path) -> None:
    done = _kernelci(project, "bisect", "softmax/triton", "--case", CASE, "--good", "HEAD~3")

    assert (0, f"first slow: {_git(project, 'rev-parse', 'HEAD~1')}") == (
        done.returncode, done.stdout.splitlines()[-1],
    ), done.stderr[-3000:]  # fmt: skip
