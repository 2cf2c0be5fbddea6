"""The folder that a job lives in: a copy of GitHub's runner, a home, temporary files; made before it, gone after it.

The copy's files are links to an installation that is root's: a job can replace them in its own folder, and can't change
them. Trees that a job made are removed by `rm`, which no depth and no strange name stops.
"""

import os
import shutil
import subprocess
from pathlib import Path

from kernelci.errors import RunnerBroken
from kernelci.runner.keep import SHARED
from kernelci.runner.users import User

RUN = "run.sh"
LOG_TAIL = 2000


class Workplace:
    """One job's folders below `folder`."""

    def __init__(self, folder: Path, user: User) -> None:
        self.folder, self._user = folder, user
        self.runner, self.home, self.temporary = (folder / name for name in ("runner", "home", "tmp"))
        self.log = folder / "log"

    def make(self, installation: Path) -> None:
        """Make all of it. Raises RunnerBroken."""
        if not (installation / RUN).is_file():
            raise RunnerBroken(f"{installation} holds no {RUN}", hint="kernelci runner setup")
        try:
            self.folder.mkdir(parents=True)
            self.folder.chmod(0o711)
            for each in (self.home, self.temporary):
                each.mkdir(mode=0o700)
                give(each, self._user)
            copy(installation, self.runner, self._user)
        except (OSError, subprocess.SubprocessError) as error:
            raise RunnerBroken(f"no folder for a job: {error}", hint="is the disk full?") from error

    def tail(self) -> str:
        """The last that GitHub's runner printed."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL))
                return file.read().decode(errors="replace")
        except OSError:
            return ""


def give(path: Path, user: User) -> None:
    """Let a folder be the job's."""
    if user.apart:
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def copy(source: Path, to: Path, user: User) -> None:
    """A tree whose folders are the job's. Its files are links where they can't be written, else copies."""
    done = None
    if user.apart:
        done = subprocess.run(["cp", "-al", "--", source, to], capture_output=True, timeout=600, check=False)
    if done is None or done.returncode:  # no links between file systems
        remove(to)
        subprocess.run(["cp", "-a", "--reflink=auto", "--", source, to], capture_output=True, timeout=600, check=True)
    if user.apart:
        owner = f"{user.uid}:{user.gid}"
        subprocess.run(
            ["find", to, "-xdev", "-type", "d", "-exec", "chown", "-h", owner, "{}", "+"],
            capture_output=True, timeout=600, check=True,
        )  # fmt: skip


def remove(path: Path) -> bool:
    """Remove whatever is there; whether it is gone."""
    if not path.is_symlink() and path.is_dir() and os.geteuid() != 0:
        subprocess.run(["chmod", "-R", "u+rwX", "--", path], capture_output=True, timeout=600, check=False)
    subprocess.run(["rm", "-rf", "--one-file-system", "--", path], capture_output=True, timeout=600, check=False)
    return not path.exists() and not path.is_symlink()


def strays(user: User, places: tuple[Path, ...] = SHARED) -> list[Path]:
    """What the job's own user left in places that all share."""
    if not user.apart:
        return []
    found = []
    for place in places:
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue
        found += [Path(each.path) for each in entries if _owner(each) == user.uid]
    return found


def _owner(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except OSError:
        return -1


def free_bytes(path: Path) -> int:
    """What is free where the path lies, or will lie."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free
