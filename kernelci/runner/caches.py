"""Caches between jobs, by trust: all start from what the base branch's jobs leave; a pull request's own serve only it.

A job's cache always lies at the same path, since installed environments can't move. It is a copy: of its own pull
request's, or else of the base's. What is kept belongs to root, so that the copies can be links that nobody changes.
"""

import contextlib
import os
import subprocess
from pathlib import Path

from kernelci.runner.users import User
from kernelci.runner.workplace import copy, give, remove

BASE = "base"


class Caches:
    """Caches below the folder of the host's state."""

    def __init__(self, state: Path, user: User, pulls: int) -> None:
        self.active = state / "cache"
        self._kept, self._user, self._pulls = state / "kept", user, pulls
        self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        """Where a job's tools find it."""
        folder = str(self.active)
        return {
            "XDG_CACHE_HOME": folder, "KERNELCI_CACHE": f"{folder}/kernelci", "KERNELCI_VENVS": f"{folder}/venvs",
            "RUNNER_TOOL_CACHE": f"{folder}/tools", "PIP_CACHE_DIR": f"{folder}/pip",
        }  # fmt: skip

    def lay(self, key: str) -> None:
        """Lay out what a job with this key starts from; nothing for an empty one. Raises OSError, SubprocessError."""
        remove(self.active)
        source = next((self._kept / name for name in (key, BASE) if key and (self._kept / name).is_dir()), None)
        if source is None:
            self.active.mkdir(mode=0o755)
            give(self.active, self._user)
        else:
            copy(source, self.active, self._user)

    def keep(self, key: str) -> None:
        """Keep what the job left, for those that come after it with this key; none for an empty one."""
        if not key or not self.active.is_dir():
            remove(self.active)
            return
        if self._user.apart:  # this also takes away every setuid bit
            mine: list[str | Path] = ["chown", "-Rh", f"{os.getuid()}:{os.getgid()}", "--", self.active]
            subprocess.run(mine, capture_output=True, timeout=600, check=True)
            # pip writes files that only their owner reads; the owner of the copies' files stays root.
            readable: list[str | Path] = ["chmod", "-R", "a+rX", "--", self.active]
            subprocess.run(readable, capture_output=True, timeout=600, check=True)
        remove(self._kept / key)
        self.active.rename(self._kept / key)
        os.utime(self._kept / key)
        self.prune(self._pulls)

    def prune(self, pulls: int) -> None:
        """Keep the newest of the pull requests' caches, so many."""
        for folder in self._oldest()[: -pulls or None]:
            remove(folder)

    def drop_one(self) -> bool:
        """Give up what is worth least, for its space; whether there was anything."""
        candidates = [*self._oldest(), *([self._kept / BASE] if (self._kept / BASE).is_dir() else [])]
        return bool(candidates) and remove(candidates[0])

    def _oldest(self) -> list[Path]:
        found = []
        for folder in self._kept.glob("pull-*"):
            with contextlib.suppress(OSError):
                found.append((folder.stat().st_mtime_ns, folder))
        return [folder for _, folder in sorted(found)]
