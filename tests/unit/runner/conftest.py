"""A host in a folder of its own, with a stand-in for GitHub's runner, on real processes."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelci.runner import cgroup
from kernelci.runner.records import Job, Records

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PULL = {
    "GITHUB_REPOSITORY": "octo-org/kernels",
    "GITHUB_WORKFLOW_REF": "octo-org/kernels/.github/workflows/kernels.yml@refs/pull/7/merge",
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_ACTOR": "octocat",
    "GITHUB_RUN_ID": "17",
    "GITHUB_JOB": "gpu",
}
NIGHT = PULL | {
    "GITHUB_WORKFLOW_REF": "octo-org/kernels/.github/workflows/nightly.yml@refs/heads/main",
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_EVENT_NAME": "schedule",
}
AS_ROOT = os.geteuid() == 0
# A number that nobody has: what belongs to it is ended, and other tests' jobs must not be.
USER = str(61_000 + os.getpid() % 4000) if AS_ROOT else ""


class HostAtWork:
    """One host: its folders, its plan of jobs, its loop."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state, self.shared = folder, folder / "state", folder / "shared"
        self.installation = folder / "installation"
        shutil.copytree(HERE / "standin", self.installation)
        self.shared.mkdir()
        self.shared.chmod(0o777)
        (self.installation / "shared").write_text(str(self.shared))
        self.options: dict[str, Any] = {
            "repository": "octo-org/kernels",
            "workflows": ["octo-org/kernels/.github/workflows/*.yml@*"],
            "installation": str(self.installation),
            "state": str(self.state),
            "broker": str(folder / "no-broker"),
            "user": USER,
            "retry_s": 0.05,
            "stop_grace_s": 1.0,
            "disk_free_bytes": 0,
            "failures": 3,
        }
        self.started: list[subprocess.Popen[str]] = []
        self.records = Records(self.state / "records")

    def plan(self, *jobs: dict[str, Any]) -> None:
        """The jobs that GitHub gives to the host, one after the other."""
        made = self.shared / "plan.made"
        made.write_text(json.dumps(jobs))
        made.chmod(0o666)
        made.replace(self.shared / "plan.json")

    def gpu(self, **state: Any) -> None:
        """The GPU's state from now on."""
        (self.folder / "gpus.new").write_text(json.dumps(state))
        (self.folder / "gpus.new").replace(self.folder / "gpus.json")

    def start(self, jobs: int | None = 1) -> "subprocess.Popen[str]":
        """Start the loop."""
        (self.folder / "options.json").write_text(json.dumps({**self.options, "jobs": jobs}))
        command = [sys.executable, str(HERE / "driver.py"), str(self.folder)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.started.append(process)
        return process

    def run(self, jobs: int = 1) -> tuple[int, str]:
        """Let the loop take so many jobs; its exit code, and what it logged."""
        process = self.start(jobs)
        said = process.communicate(timeout=120)[1]
        return process.returncode, said

    @property
    def group(self) -> Path | None:
        """The control group of its jobs; None where there is none."""
        own = cgroup.own_folder()
        return own / f"kernelci-job-{zlib.crc32(str(self.state).encode()):08x}" if own else None

    @property
    def jobs(self) -> list[Job]:
        """What the host remembers of its jobs."""
        return self.records.jobs()

    @property
    def noted(self) -> str:
        """What jobs noted for the test."""
        path = self.shared / "log"
        return path.read_text() if path.exists() else ""


def end(process: "subprocess.Popen[str]") -> None:
    """No loop outlives its test."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.communicate()


@pytest.fixture
def host() -> Iterator[HostAtWork]:
    """A fresh host, where every user can reach it."""
    folder = Path(tempfile.mkdtemp(prefix="kci", dir="/var/tmp"))
    folder.chmod(0o755)
    host = HostAtWork(folder)
    yield host
    for process in host.started:
        end(process)
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Wait until something holds; what it is."""

    def wait(holds: Callable[[], Any]) -> Any:
        end = time.monotonic() + 120
        while not (found := holds()):
            assert time.monotonic() < end, "it never came to hold"
            time.sleep(0.05)
        return found

    return wait


@pytest.fixture(scope="session")
def pull() -> dict[str, str]:
    """A job of a pull request."""
    return PULL


@pytest.fixture(scope="session")
def night() -> dict[str, str]:
    """A job of the base branch."""
    return NIGHT
