"""What an operator reads."""

import os
from pathlib import Path

import pytest

from kernelci.config import RunnerOptions
from kernelci.runner import starting, status
from kernelci.runner.records import Job, Now, Quarantine, Records
from tests.conftest import Golden

LABELS = ("self-hosted", "linux", "ephemeral", "x64", "gpu", "gpu:h200", "sm_90a", "gpus:8", "driver:570.86.15")


@pytest.fixture
def records(tmp_path: Path) -> Records:
    (tmp_path / "records").mkdir()
    return Records(tmp_path / "records")


def _at_work(records: Records, pid: int) -> None:
    weak = ("/tmp and /dev/shm are shared with the host",)
    job = "octo-org/kernels run 17, job gpu: schedule"
    records.enter(Now("running", "2026-11-30T03:00:00+00:00", pid, "kernelci-a-1", job, 1, LABELS, weak))
    records.add(Job("kernelci-a-0", "t", "2026-11-30T02:00:00+00:00", "done", "octo-org/kernels run 16", leftovers=2))
    records.add(
        Job("kernelci-a-2", "t", "2026-11-30T02:30:00+00:00", "refused", why="actor 'x' is not admitted on this host",
            faults=("NVIDIA H200: lost",))
    )  # fmt: skip


def test_a_host_at_work(records: Records, tmp_path: Path, golden: Golden) -> None:
    _at_work(records, os.getpid())
    found = status.find(RunnerOptions(state=str(tmp_path)))

    assert 0 == found.exit_code
    golden("runner/status.txt", status.text(found) + "\n")


def test_a_host_in_quarantine(records: Records, tmp_path: Path, golden: Golden) -> None:
    records.enter(Now("quarantine", "2026-11-30T03:00:00+00:00", os.getpid(), labels=LABELS))
    reason = "3 failures in a row, the last: 4.2 GiB are free at /var/lib/kernelci-runner, less than 20.0"
    records.quarantine(Quarantine("2026-11-30T03:00:00+00:00", reason, ("a clock", "another clock", "a disk")))
    options = RunnerOptions(state=str(tmp_path))

    found = status.find(options)
    golden("runner/quarantine.txt", status.text(found) + "\n")
    assert (4, f"released; it was: {reason}", 0) == (
        found.exit_code, starting.release(options), status.find(options).exit_code,
    )  # fmt: skip


def test_a_host_that_stopped_or_was_killed(records: Records, tmp_path: Path) -> None:
    options = RunnerOptions(state=str(tmp_path))
    _at_work(records, 2**22 + 5)

    assert (3, "no loop runs; the last was running, and did not stop in order, at 2026-11-30T03:00:00+00:00") == (
        status.find(options).exit_code, status.text(status.find(options)).splitlines()[0],
    )  # fmt: skip
    assert '"alive": false' in status.as_json(status.find(options))
