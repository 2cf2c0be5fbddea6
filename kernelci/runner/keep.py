"""What holds a job: how its processes start, which they are, and how all of them end.

A control group where this machine allows one; always also what a sweep finds. As root a job has a user of its own that
can gain no rights, and a mount and an IPC namespace of its own with fresh /tmp, /var/tmp and /dev/shm.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from kernelci.runner import cgroup, sweep
from kernelci.runner.users import User

SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
LISTENER = "Runner.Listener"
WORKER = "Runner.Worker"
KILL_S = 15.0
_STEP_S = 0.02


class Keep:
    """Holds one job at a time. `seen`: folders that must stay visible inside."""

    def __init__(self, user: User, seen: Sequence[Path] = (), group: str = "kernelci-job") -> None:
        self.user = user
        self._me = os.getpid()
        self._adopts = sweep.become_subreaper()
        self._cgroup = cgroup.make(group)
        self.private = _private(seen) if user.apart and namespaces() else ()
        self.main = 0

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """What this machine doesn't allow, in words."""
        found = {
            "jobs run as the loop's own user": not self.user.apart,
            "no control group: what a job leaves is found by its parents" + (" and its user" * self.user.apart): (
                self._cgroup is None
            ),
            "no subreaper: a process that leaves its parents is found by its user only": not self._adopts,
            "/tmp and /dev/shm are shared with the host": not self.private,
        }
        return tuple(text for text, holds in found.items() if holds)

    def start(
        self, command: Sequence[str], folder: Path, temporary: Path, env: Mapping[str, str], log: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        """Start a job's first process in `folder`. Raises OSError."""
        started = subprocess.Popen(
            self.command(command, temporary), cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.main = started.pid
        return started

    def command(self, command: Sequence[str], temporary: Path) -> list[str]:
        """The command with all around it. Each of these programs becomes the next: the process stays the same."""
        lines = ["set -e"]
        if self._cgroup is not None:
            lines.append(f"echo $$ > {shlex.quote(str(self._cgroup.folder / 'cgroup.procs'))}")
        for place in self.private:
            fresh = (
                "-t tmpfs -o mode=1777,nosuid,nodev tmpfs"
                if place == SHARED[2]
                else f"--bind {shlex.quote(str(temporary))}"
            )
            lines.append(f"mount {fresh} {place}")
        apart = ["unshare", "--mount", "--ipc", "--propagation", "private"] if self.private else []
        return [*apart, "sh", "-c", "\n".join([*lines, 'exec "$@"']), "sh", *self._rights(), *command]

    def _rights(self) -> list[str]:
        if not self.user.apart:
            return ["setpriv", "--no-new-privs"] if shutil.which("setpriv") else []
        who = [f"--reuid={self.user.uid}", f"--regid={self.user.gid}", "--clear-groups"]
        return ["setpriv", *who, "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]

    def pids(self) -> frozenset[int]:
        """Every process of the job that runs."""
        sweep.reap(self.main)
        processes = sweep.table()
        found = sweep.descendants(self._me, processes)
        if self._cgroup is not None:
            found |= self._cgroup.pids()
        if self.user.apart:
            found |= sweep.of_user(self.user.uid, processes)
        return sweep.alive(found, processes)

    def strike(self) -> None:
        """End the job, but not GitHub's listener, which then tells GitHub.

        All are stopped before the first one ends: a worker that saw its step end would go on with the next.
        """
        stopped: frozenset[int] = frozenset()
        while new := self._struck() - stopped:
            self._signal(new, signal.SIGSTOP)
            stopped |= new
        self._signal(stopped, signal.SIGKILL)

    def _struck(self) -> frozenset[int]:
        """All of the job but the listener and what it was started by."""
        pids, processes = self.pids(), sweep.table()
        listeners = [pid for pid in pids if pid in processes and processes[pid].name == LISTENER]
        return pids - {each.pid for pid in listeners for each in sweep.ancestors(pid, processes)}

    def end(self, within_s: float = KILL_S) -> frozenset[int]:
        """End every process; those that are still there afterwards. Our own children are waited for."""
        last = time.monotonic() + within_s
        while pids := self.pids():
            self._at_once()
            self._signal(pids, signal.SIGKILL)
            if time.monotonic() > last:
                return pids
            time.sleep(_STEP_S)
        if self._cgroup is not None:
            return self._cgroup.end()
        return frozenset()

    def _at_once(self) -> None:
        """End all in one step, which no process can outrun by starting others."""
        if self._cgroup is not None:
            self._cgroup.shoot()
        if self.user.apart:  # as that user, all that it may signal
            subprocess.run([*self._rights(), "kill", "-KILL", "--", "-1"], capture_output=True, timeout=20, check=False)

    def again(self) -> None:
        """Make ready for the next job."""
        self.main = 0
        if self._cgroup is not None:
            self._cgroup = cgroup.make(self._cgroup.folder.name)

    def working(self) -> bool:
        """Whether GitHub's runner has a job."""
        processes = sweep.table()
        return any(processes[pid].name == WORKER for pid in self.pids() if pid in processes)

    @staticmethod
    def _signal(pids: frozenset[int], number: signal.Signals) -> None:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, number)


def _private(seen: Sequence[Path]) -> tuple[Path, ...]:
    """Shared folders that a job can have for itself: those that hold nothing it needs."""
    return tuple(place for place in SHARED if place.is_dir() and not any(path.is_relative_to(place) for path in seen))


def namespaces() -> bool:
    """Whether mount and IPC namespaces can be made here."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        return False
    trial = ["unshare", "--mount", "--ipc", "--propagation", "private", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm"]
    return subprocess.run(trial, capture_output=True, timeout=20, check=False).returncode == 0
