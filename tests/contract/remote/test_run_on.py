"""`kernelci run --on HOST` over a real ssh server: the same report, the same exit code, and nothing left behind."""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelci import results

Run = Callable[..., tuple[int, str, str]]
SLOW = """
import os, subprocess, time
from kernelci.rungs import Findings, rung

@rung("slow", after=("precheck",))
def slow(referee):
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open({marker!r}, "w") as file:
        file.write(f"{{os.getpid()}} {{child.pid}}")
    time.sleep(600)
    return Findings()
"""
LEAVES = """
from kernelci.model import Artifact
from kernelci.rungs import Findings, rung

@rung("leaves", after=("precheck",))
def leaves(referee):
    path = referee.out / "dumps" / "sum" / "text.txt"
    path.parent.mkdir(parents=True)
    path.write_text("text")
    return Findings(artifacts=(Artifact("dumps/sum/text.txt", "text", 4),))
"""


def report(project: Path) -> Any:
    return results.read(project / "kernelci-report")


def test_a_report_folder_and_its_exit_code(run_on: Run, project: Path, scratch: Path) -> None:
    (project / "rungs").mkdir()
    (project / "rungs" / "leaves.py").write_text(LEAVES)
    old = project / "kernelci-report" / "dumps" / "old.ptx"
    old.parent.mkdir(parents=True)
    old.write_text("old")

    code, out, err = run_on("sum/one", "--rungs", "leaves")

    assert 0 == code, err
    (kernel,) = report(project).kernels
    (left,) = kernel.rung("leaves").artifacts
    assert "text" == (project / "kernelci-report" / left.path).read_text()
    assert ("sum/one  leaves  PASSED" in err, "PASSED" in out) == (True, True)
    assert (False, []) == (old.exists(), list(scratch.iterdir()))


def test_a_kernel_that_fails_options_and_a_base(run_on: Run, project: Path, git: Any) -> None:
    shutil.rmtree(project / ".git")
    commit = git(project)
    (project / "kernels" / "sum" / "one.py").unlink()
    arguments = ("--rungs", "precheck", "--seed", "0a0b", "--json", "--base", "HEAD")

    code, out, err = run_on(*arguments, KERNELCI_SEEDS="1")

    assert 1 == code, err
    found = report(project)
    assert ("0a0b", commit, commit, ("sum/one",)) == (
        found.seed, found.change.base, found.change.head, found.change.removed,
    )  # fmt: skip
    assert (project / "kernelci-report" / "results.json").read_text() == out
    assert "kernels/sum/bad.py" == json.loads(out)["kernels"][0]["path"]


def _hanging(project: Path, tmp_path: Path) -> Path:
    marker = tmp_path / "marker"
    (project / "rungs").mkdir()
    (project / "rungs" / "slow.py").write_text(SLOW.format(marker=str(marker)))
    return marker


def _waited(marker: Path, process: Any) -> list[int]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if marker.is_file() and len(pids := marker.read_text().split()) == 2:
            return [int(pid) for pid in pids]
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail(process.communicate(timeout=60)[1])


def _gone(pids: list[int], scratch: Path) -> bool:
    """Whether all these processes have ended and the far side's folder is empty, now or soon."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids) and not list(scratch.iterdir()):
            return True
        time.sleep(0.05)
    return False


def test_ctrl_c_stops_the_run_there(start: Any, project: Path, scratch: Path, tmp_path: Path) -> None:
    marker = _hanging(project, tmp_path)
    process = start("sum/one", "--rungs", "slow")
    pids = _waited(marker, process)

    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process of the group
    _, err = process.communicate(timeout=60)

    assert 130 == process.returncode, err
    assert "stopping the run on gpu" in err
    assert _gone(pids, scratch)
    assert "interrupted" in report(project).notes[-1]  # what was done by then is here


def test_a_connection_that_dies_stops_the_run_there(start: Any, project: Path, scratch: Path, tmp_path: Path) -> None:
    marker = _hanging(project, tmp_path)
    process = start("sum/one", "--rungs", "slow")
    pids = _waited(marker, process)

    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)

    assert _gone(pids, scratch)


def test_no_ssh(run_on: Run) -> None:
    assert (2, "", "error[ssh]: no program '/nowhere/ssh' here\n") == _head(run_on(KERNELCI_SSH="/nowhere/ssh"))


def test_an_unknown_host(run_on: Run) -> None:
    code, _, err = run_on(host="nowhere.invalid")
    assert (2, True) == (code, "error[ssh]: no machine nowhere.invalid is known\n" in err), err


def test_nobody_listens(run_on: Run) -> None:
    code, _, err = run_on(host="closed")
    assert (4, True) == (code, "error[ssh]: no connection to closed: " in err), err


def test_not_let_in(run_on: Run) -> None:
    code, _, err = run_on(host="stranger")
    assert (2, True) == (code, "error[ssh]: stranger lets nobody in: " in err), err


@pytest.mark.parametrize("host", ["-oProxyCommand=touch x", "a b", "a;b", "$(id)", "a\nb", "-"])
def test_what_is_no_host(host: str, run_on: Run, project: Path) -> None:
    code, _, err = run_on(f"--on={host}")
    assert (2, True, False) == (code, "names no machine" in err, (project / "x").exists())


def test_no_kernelci_there(run_on: Run) -> None:
    code, _, err = run_on(KERNELCI_ON_COMMAND="kernelci-that-is-nowhere")
    assert (2, True) == (code, "error[remote-kernelci]: no kernelci on gpu (" in err), err


def test_an_older_kernelci_there(run_on: Run) -> None:
    command = f"{sys.executable} -c \"import click; click.Group('kernelci')()\""
    code, _, err = run_on(KERNELCI_ON_COMMAND=command)
    assert (2, True) == (code, "it is an older version, which has no `hosted`" in err), err


def test_another_version_of_kernelci_there(run_on: Run, scratch: Path) -> None:
    other = (
        "import kernelci, sys; kernelci.__version__ = '9.9'; "
        "from kernelci.remote.there import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
    )
    path = str(Path(__file__).parents[3])
    code, _, err = run_on(KERNELCI_ON_COMMAND=f'env PYTHONPATH={path} {sys.executable} -c "{other}"')
    assert (2, True) == (code, "gpu has kernelci 9.9, and here is " in err), err


def test_a_kernelci_that_does_not_start_there(run_on: Run) -> None:
    code, _, err = run_on(KERNELCI_ON_COMMAND=f"{sys.executable} -m no_such_module")
    assert (2, True) == (code, "error[remote-kernelci]: kernelci on gpu does not answer: " in err), err


def test_a_full_disk_there(run_on: Run, small_disk: str, project: Path) -> None:
    with (project / "kernels" / "sum" / "table.bin").open("wb") as file:
        file.truncate(4 * 2**20)

    code, _, err = run_on("sum/one", "--rungs", "precheck", KERNELCI_ON_COMMAND=small_disk)

    assert (4, True) == (code, "error[no-space]: gpu: no space left in /tmp there\n" in err), err


def test_configuration_that_is_wrong_is_said_there_and_no_old_report_is_shown(run_on: Run, project: Path) -> None:
    (project / "kernelci-report").mkdir()
    (project / "kernelci-report" / "results.json").write_text("an earlier one")

    code, out, err = run_on("--rungs", "nonsense")

    assert (2, "", True) == (code, out, "error[configuration]: no rung 'nonsense'" in err), err
    assert "an earlier one" == (project / "kernelci-report" / "results.json").read_text()


def test_a_kernel_that_is_not_there_is_said_before_a_connection(run_on: Run) -> None:
    code, _, err = run_on("sum/none", host="nowhere.invalid")
    assert (2, True) == (code, "error[no-kernels]" in err), err


def _head(found: tuple[int, str, str]) -> tuple[int, str, str]:
    return found[0], found[1], found[2].split("  next:")[0]
