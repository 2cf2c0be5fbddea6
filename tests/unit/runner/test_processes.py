"""Processes found by control group, by parent, by user; and ended."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelci.errors import ConfigError
from kernelci.runner import cgroup, keep, sweep, users
from kernelci.runner.sweep import Process

TREE = {pid: Process(pid, parent, f"p{pid}", state, uid) for pid, parent, state, uid in [
    (1, 0, "S", 0), (10, 1, "S", 0), (20, 10, "S", 7), (21, 20, "R", 7), (22, 20, "Z", 7), (30, 1, "S", 7),
]}  # fmt: skip


def test_who_started_whom() -> None:
    assert [21, 20, 10, 1] == [each.pid for each in sweep.ancestors(21, TREE)]
    assert frozenset({20, 21, 22}) == sweep.descendants(10, TREE)
    assert frozenset({20, 21, 22, 30}) == sweep.of_user(7, TREE)
    assert frozenset({20, 21}) == sweep.alive(frozenset({20, 21, 22, 99}), TREE)


def test_a_circle_ends() -> None:
    assert [5, 6] == [
        each.pid for each in sweep.ancestors(5, {5: Process(5, 6, "", "S", 0), 6: Process(6, 5, "", "S", 0)})
    ]


def test_the_table_knows_this_process() -> None:
    found = sweep.table()[os.getpid()]

    assert (os.getppid(), os.getuid(), "R") == (found.parent, found.uid, found.state)


@pytest.mark.parametrize(
    ("mounts", "groups", "expected"),
    [
        (["30 29 0:26 / /sys/fs/cgroup rw - cgroup2 c rw"], ["0::/slice/x.service"], "/sys/fs/cgroup/slice/x.service"),
        (["30 29 0:26 / /sys/fs/cgroup/unified rw - cgroup2 c rw"], ["9:cpu:/", "0::/"], "/sys/fs/cgroup/unified"),
        (["30 29 0:26 /pod /sys/fs/cgroup rw - cgroup2 c rw"], ["0::/pod/run"], "/sys/fs/cgroup/run"),
        (["30 29 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"], ["1:cpu:/"], None),
    ],
)  # fmt: skip
def test_the_own_group(mounts: list[str], groups: list[str], expected: str | None) -> None:
    found = cgroup._folder(mounts, groups)

    assert expected == (None if found is None else str(found))


@pytest.fixture
def group() -> Any:
    made = cgroup.make(f"kernelci-test-{os.getpid()}")
    if made is None:
        pytest.skip("no control group can be made here")
    yield made
    made.end()


def test_a_group_ends_all_that_is_in_it(group: cgroup.Cgroup, eventually: Callable[[Callable[[], Any]], Any]) -> None:
    inner = group.folder / "inner"
    inner.mkdir()
    script = f"echo $$ > {group.folder}/cgroup.procs; trap '' TERM"
    script += f"; (echo $BASHPID > {inner}/cgroup.procs; sleep 1000) & setsid sleep 1000"
    with subprocess.Popen(["bash", "-c", script]) as child:
        eventually(lambda: len(group.pids()) >= 3)
        left = group.end()
        child.wait(10)

    assert (frozenset(), False) == (left, group.folder.exists())


def test_a_group_that_was_left_is_made_anew(group: cgroup.Cgroup) -> None:
    (group.folder / "old").mkdir()

    again = cgroup.make(group.folder.name)

    assert again is not None
    assert [] == [path for path in again.folder.iterdir() if path.is_dir()]


SWEPT = """
import os, subprocess, sys, time
from kernelci.runner import cgroup, keep, users
cgroup.make = lambda name: None  # as on a machine without control groups
held = keep.Keep(users.User(os.getuid(), os.getgid(), "", False))
leave = "trap '' TERM; (setsid bash -c 'setsid sleep 1000 & sleep 1000' &) ; sleep 0.2"
child = subprocess.Popen(["bash", "-c", leave])
held.main = child.pid
child.wait()
time.sleep(0.2)
before = len(held.pids())
left = held.end()
print(before >= 2, len(left), len(held.pids()), held.weaknesses)
"""


def test_without_a_group_orphans_are_found_by_who_started_them() -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", SWEPT], capture_output=True, text=True, timeout=60, check=True, env=env
    )

    assert done.stdout.startswith("True 0 0 (\"jobs run as the loop's own user\", 'no control group")


def test_children_of_others_are_not_reaped() -> None:
    with subprocess.Popen(["true"]) as child:
        time.sleep(0.1)
        sweep.reap(but=child.pid)

    assert 0 == child.returncode


def test_what_a_job_needs_stays_visible() -> None:
    assert keep.SHARED[1:] == keep._private([Path("/tmp/state")])
    assert keep.SHARED == keep._private([Path("/var/lib/x")])


def test_users() -> None:
    if os.geteuid() != 0:
        assert (False, os.getuid()) == ((own := users.find("")).apart, own.uid)
    for name in ("root", "nobody", *[""] * (os.geteuid() == 0)):
        with pytest.raises(ConfigError, match=f"may not run as {name or 'root'}"):
            users.find(name)
    with pytest.raises(ConfigError, match="there is no user nobody-of-that-name"):
        users.find("nobody-of-that-name")
