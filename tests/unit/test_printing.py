"""Standard output that nobody reads, that is full, or that lacks a sign: no run is lost, and there is no traceback."""

import os
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from kernelci import results
from kernelci.reasons import Outcome


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose kernel has no card: judged in a moment."""
    (tmp_path / "kernels" / "one").mkdir(parents=True)
    (tmp_path / "kernels" / "one" / "one.py").touch()
    return tmp_path


def _kernelci(project: Path, *arguments: str, stdout: int, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kernelci", *arguments],
        cwd=project,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
        env=os.environ | {"KERNELCI_CACHE": str(project / "cache")} | environment,
    )


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_run_goes_on_where_its_reader_is_gone(project: Path, flags: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = _kernelci(project, "run", "--out", "out", *flags, stdout=writing)
    finally:
        os.close(writing)

    assert (1, "") == (done.returncode, done.stderr)
    assert [Outcome.FAILED] == [kernel.outcome for kernel in results.read(project / "out").kernels]


@pytest.mark.parametrize("command", [("run", "--out", "out"), ("explain",)])
def test_a_full_disk_behind_standard_output_is_one_message(project: Path, command: tuple[str, ...]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = _kernelci(project, *command, stdout=full)
    finally:
        os.close(full)

    assert (4, ["error[no-space]", "  next"]) == (
        done.returncode,
        [line.partition(":")[0] for line in done.stderr.splitlines()],
    )


def test_a_sign_that_the_encoding_lacks_is_a_question_mark(project: Path) -> None:
    _kernelci(project, "run", "--out", "out", stdout=subprocess.DEVNULL)

    done = _kernelci(project, "report", "out", stdout=subprocess.PIPE, PYTHONIOENCODING="latin-1")

    assert (0, True) == (done.returncode, "? FAILED  one/one at precheck" in done.stdout)


def test_a_place_that_can_not_be_written_is_one_message(project: Path) -> None:
    _kernelci(project, "run", "--out", "out", stdout=subprocess.DEVNULL)
    (project / "taken").touch()

    done = _kernelci(project, "merge", "out", "--out", "taken/below", stdout=subprocess.DEVNULL)

    assert (2, ["error[configuration]", "  next"]) == (
        done.returncode,
        [line.partition(":")[0] for line in done.stderr.splitlines()],
    )


def test_a_report_shown_again_has_the_terminals_own_width_and_colours(project: Path) -> None:
    _kernelci(project, "run", "--out", "out", stdout=subprocess.DEVNULL)
    ours, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 60))
    try:
        done = _kernelci(project, "report", "out", stdout=terminal, TERM="xterm", COLUMNS="", NO_COLOR="")
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(terminal)
        os.close(ours)

    assert (0, True) == (done.returncode, "\x1b[" in shown)
    assert 60 >= max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in shown.splitlines())
