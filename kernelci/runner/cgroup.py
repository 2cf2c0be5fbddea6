"""A control group (version 2) around all processes of a job: nothing that starts inside leaves it, one write ends all.

Needs a group of our own that we may make groups in: systemd's `Delegate=yes`, or root. Where there is none, `sweep`
does what can be done without.
"""

import contextlib
import os
import time
from pathlib import Path

KILL_S = 10.0
_STEP_S = 0.02


def own_folder() -> Path | None:
    """The folder of this process's control group; None without version 2."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return _folder(mounts, groups)


def _folder(mounts: list[str], groups: list[str]) -> Path | None:
    places = [(line.split()[3], line.split()[4]) for line in mounts if " - cgroup2 " in line]
    own = next((line[3:] for line in groups if line.startswith("0::")), None)
    if not places or own is None:
        return None
    root, at = places[0]  # a container may see only a part of the hierarchy
    return Path(at) / own.removeprefix(root if root != "/" else "").lstrip("/")


def make(name: str) -> "Cgroup | None":
    """A fresh group below our own; one that an earlier run left is ended first. None where that can't be."""
    base = own_folder()
    if base is None:
        return None
    folder = base / name
    try:
        if folder.exists():
            Cgroup(folder).end()
        folder.mkdir(exist_ok=True)
        if not os.access(folder / "cgroup.procs", os.W_OK):
            folder.rmdir()
            return None
    except OSError:
        return None
    return Cgroup(folder)


class Cgroup:
    """One group, and those that a job makes in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def pids(self) -> frozenset[int]:
        """All processes in it."""
        found: set[int] = set()
        for path in (self.folder / "cgroup.procs", *self.folder.glob("**/*/cgroup.procs")):
            with contextlib.suppress(OSError):  # a group that has just gone
                found |= {int(pid) for pid in path.read_text().split()}
        return frozenset(found)

    def shoot(self) -> None:
        """End every process in one step, where Linux (5.14 and later) has that."""
        with contextlib.suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1")

    def kill(self, within_s: float = KILL_S) -> frozenset[int]:
        """End every process; those that are still there afterwards."""
        end = time.monotonic() + within_s
        while pids := self.pids():
            self.shoot()
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)
            if time.monotonic() > end:
                return pids
            time.sleep(_STEP_S)
        return frozenset()

    def end(self, within_s: float = KILL_S) -> frozenset[int]:
        """End every process, and the group; those that are still there afterwards."""
        if left := self.kill(within_s):
            return left
        inner = sorted(self.folder.glob("**/"), key=lambda path: -len(path.parts))
        for folder in dict.fromkeys([*inner, self.folder]):
            with contextlib.suppress(OSError):
                folder.rmdir()
        return frozenset()
