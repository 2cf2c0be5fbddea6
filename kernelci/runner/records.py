"""What the host remembers, as small files: where it is, why it stands still, and its last jobs.

Nothing here may stop the loop: with a full disk a record is lost, and said so.
"""

import datetime
import os
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from kernelci.runner.say import say

KEPT_JOBS = 500
LARGEST_BYTES = 2**20
Phase = Literal["stopped", "checking", "waiting for GitHub", "waiting for a job", "running", "cleaning", "quarantine"]
Ended = Literal["done", "refused", "time limit", "broke off", "no job", "not admitted", "stopped"]
T = TypeVar("T", bound=Struct)


class Now(Struct, frozen=True):
    """Where the host is."""

    phase: Phase
    since: str
    pid: int = 0
    job: str = ""
    text: str = ""
    failures: int = 0
    labels: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()


class Quarantine(Struct, frozen=True):
    """Why the host takes no jobs."""

    since: str
    reason: str
    failures: tuple[str, ...] = ()


class Job(Struct, frozen=True):
    """One runner's life."""

    runner: str
    began: str
    ended: str
    how: Ended
    job: str = ""
    why: str = ""
    trusted: bool = False
    leftovers: int = 0
    faults: tuple[str, ...] = ()


def stamp() -> str:
    """The time, in UTC to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


class Records:
    """The files in one folder."""

    def __init__(self, folder: Path) -> None:
        self._now, self._quarantine, self._jobs = (
            folder / name for name in ("now.json", "quarantine.json", "jobs.jsonl")
        )

    def enter(self, now: Now) -> None:
        """The host is here now."""
        self._write(self._now, msgspec.json.encode(now))

    def now(self) -> Now | None:
        """Where the host was last; None if it never ran."""
        return _read(self._now, Now)

    def quarantine(self, quarantine: Quarantine) -> None:
        """No more jobs until somebody releases the host."""
        self._write(self._quarantine, msgspec.json.encode(quarantine), last=True)

    def quarantined(self) -> Quarantine | None:
        """Why the host takes no jobs; None if it does. A file that can't be read counts."""
        if not self._quarantine.exists():
            return None
        return _read(self._quarantine, Quarantine) or Quarantine(stamp(), f"{self._quarantine} can't be read")

    def release(self) -> bool:
        """Take jobs again; whether none were taken."""
        there = self._quarantine.exists()
        self._quarantine.unlink(missing_ok=True)
        return there

    def add(self, job: Job) -> None:
        """A job has ended."""
        lines = [msgspec.json.encode(each) for each in self.jobs()[-(KEPT_JOBS - 1) :]]
        self._write(self._jobs, b"\n".join([*lines, msgspec.json.encode(job), b""]))

    def jobs(self) -> list[Job]:
        """The last jobs, oldest first."""
        try:
            return [msgspec.json.decode(line, type=Job) for line in _bytes(self._jobs).splitlines()]
        except (OSError, msgspec.MsgspecError):
            return []

    @staticmethod
    def _write(path: Path, data: bytes, last: bool = False) -> None:
        """Replace a file. `last`: it must outlive a power cut."""
        partial = path.with_name(f".{path.name}")
        try:
            with partial.open("wb") as file:
                file.write(data)
                if last:
                    file.flush()
                    os.fsync(file.fileno())
            partial.chmod(0o644)
            partial.replace(path)
        except OSError as error:
            say(f"{path} can't be written: {error}")


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST_BYTES)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(_bytes(path), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
