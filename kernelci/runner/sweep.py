"""What is left of a job found by who started it: children whose parents have ended become ours (a "subreaper").

This works without control groups. With a user of its own for jobs, every process of that user is the job's, too.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from kernelci.workbench import namespaces

_STEP_S = 0.02


class Process(Struct, frozen=True):
    """A line of /proc."""

    pid: int
    parent: int
    name: str
    state: str
    uid: int


def become_subreaper() -> bool:
    """Children of ended processes below us come to us, and not to init."""
    try:
        namespaces.adopt_orphans()
    except OSError:
        return False
    return True


def table() -> dict[int, Process]:
    """All processes that can be seen, by number."""
    found = (_read(int(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return {process.pid: process for process in found if process is not None}


def _read(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    name, rest = text.partition("(")[2].rpartition(")")[::2]
    state, parent = rest.split()[:2]
    uid = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:")), -1)
    return Process(pid, int(parent), name, state, uid)


def ancestors(pid: int, processes: Mapping[int, Process]) -> Iterator[Process]:
    """The process, its parent, and so on; ends with the last that can be seen."""
    seen: set[int] = set()
    while (process := processes.get(pid)) is not None and pid not in seen:
        yield process
        seen.add(pid)
        pid = process.parent


def descendants(of: int, processes: Mapping[int, Process]) -> frozenset[int]:
    """All that a process started, directly or not."""
    return frozenset(
        pid for pid in processes if pid != of and any(each.pid == of for each in ancestors(pid, processes))
    )


def of_user(uid: int, processes: Mapping[int, Process]) -> frozenset[int]:
    """All processes of a user."""
    return frozenset(process.pid for process in processes.values() if process.uid == uid)


def reap(but: int = 0) -> None:
    """Take note of children that have ended, other than `but`, whom somebody else waits for."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == but:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(ended.si_pid, 0)


def alive(pids: frozenset[int], processes: Mapping[int, Process]) -> frozenset[int]:
    """Those that still run: a zombie does nothing any more."""
    return frozenset(pid for pid in pids if pid in processes and processes[pid].state not in "ZX")
