"""Ten jobs in a row that leave as much as they can, and a host that is afterwards as it was."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kernelci.runner import cgroup, sweep

AS_ROOT = os.geteuid() == 0
# A process that is never the same one for long: whoever looks at it first and ends it then comes too late.
HOPS = "python3 -c 'import os, time\nwhile True:\n if os.fork(): os._exit(0)\n time.sleep(0.001)' & sleep 0.2"
MESSES = (
    "setsid nohup sleep 1000 > /dev/null 2>&1 &",
    "(trap '' TERM; setsid bash -c 'exec -a Runner.Listener sleep 1000') & disown -a",
    HOPS,
    "head -c 3000000 /dev/zero > $TMPDIR/big; mkdir -p $HOME/.config; echo x > $HOME/.config/y",
    "echo x > /tmp/kci-$UID-left; echo x > /dev/shm/kci-$UID-left; mkdir -p /var/tmp/kci-$UID-left/a",
    "ipcmk -M 4096 > /dev/null; ipcmk -Q > /dev/null; true",
    "mkdir -p a/b; touch a/b/c; chmod 000 a/b a",
    'python3 -c \'import os\nfor _ in range(1100): os.mkdir("d"); os.chdir("d")\'',
    "ln -s /etc link; touch -- '-rf' $'new\\nline'; mkfifo pipe",
    "rm -rf bin run.sh; echo 'exit 3' > run.sh; kill -9 $WORKER",
)


def _snapshot(host: Any, loop: int) -> dict[str, Any]:
    """All that a job could have changed, but for the random name of the next runner."""
    uid = int(host.options["user"] or os.getuid())
    name = host.records.now().job
    tree = sorted(
        str(path.relative_to(host.state)).replace(name, "NAME")
        for path in host.state.rglob("*")
        if path.parts[len(host.state.parts)] not in ("records", "kept")
    )
    processes = sweep.table()
    return {
        "tree": tree,
        "processes": sorted(processes[pid].name for pid in sweep.descendants(loop, processes)),
        "of its user": len(sweep.of_user(uid, processes)) if AS_ROOT else 0,
        "shared": [place for place in ("/tmp", "/var/tmp", "/dev/shm") if Path(place, f"kci-{uid}-left").exists()],
        "descriptors": min(_descriptors(loop) for _ in range(20)),  # it may just have a file of /proc open
        "mounts": len(Path(f"/proc/{loop}/mountinfo").read_text().splitlines()),
        "segments": subprocess.run(["ipcs"], capture_output=True, text=True, check=True).stdout.count(f" {uid} "),
        "groups": len(list(host.group.glob("**/"))) if host.group else 0,
    }


def _descriptors(pid: int) -> int:
    time.sleep(0.01)
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.skipif(shutil.which("ipcmk") is None, reason="needs util-linux")
def test_ten_jobs_in_a_row_leave_the_host_as_it_was(host: Any, pull: dict[str, str], eventually: Any) -> None:
    group = cgroup.make(f"kernelci-trial-{os.getpid()}")
    needs = {"-left": AS_ROOT, "ipcmk": AS_ROOT, "os.fork()": AS_ROOT or group is not None}
    messes = [mess for mess in MESSES if all(has or word not in mess for word, has in needs.items())]
    if group is not None:
        group.end()
    host.plan({"env": pull})
    process = host.start(None)

    def idle(jobs: int) -> bool:
        processes = sweep.table()
        here = [processes[pid].name for pid in sweep.descendants(process.pid, processes)]
        return len(host.jobs) == jobs and host.records.now().phase == "waiting for a job" and "Runner.Listener" in here

    eventually(lambda: idle(1))
    before = _snapshot(host, process.pid)
    host.plan(*({"env": pull, "steps": [mess]} for mess in messes))
    eventually(lambda: idle(1 + len(messes)))
    after = _snapshot(host, process.pid)
    process.terminate()
    said = process.communicate(timeout=120)[1]

    assert before == after, said
    assert [()] * (1 + len(messes)) == [job.faults for job in host.jobs[: 1 + len(messes)]], said
    assert [*["done"] * len(messes), "broke off"] == [job.how for job in host.jobs[: 1 + len(messes)]], said


@pytest.mark.skipif(not AS_ROOT, reason="only root can mount a small disk")
def test_a_job_that_fills_the_disk(host: Any, pull: dict[str, str]) -> None:
    host.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0755", "tmpfs", host.state], check=True)
    host.options["disk_free_bytes"] = 2 * 2**20
    fill = "head -c 7000000 /dev/zero > $XDG_CACHE_HOME/big; cat /dev/zero > $TMPDIR/big"
    fill += "; df --output=pcent $TMPDIR | tail -1 >> $SHARED/log"
    try:
        host.plan({"env": pull, "steps": [f"{fill}; true"]}, {"env": pull}, {"env": pull})
        code, said = host.run(2)
        (host.state / "of somebody else").write_bytes(bytes(7 * 2**20))
        full = host.run(1)
    finally:
        subprocess.run(["umount", "-l", host.state], check=True)

    assert "100%" in host.noted
    assert (0, 2) == (code, said.count(": done: ")), said
    assert "a cache was dropped: " in said
    assert (4, True) == (full[0], "GiB are free at" in full[1]), full[1]
