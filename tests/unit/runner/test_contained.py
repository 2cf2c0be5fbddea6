"""What a job tries on its host, as a user of its own; needs root, as the loop does."""

import os
from typing import Any

import pytest

from kernelci.runner import cgroup

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user for jobs")
STATE = "$(dirname $ACTIONS_RUNNER_HOOK_JOB_STARTED)/.."
TRIES = {
    "change a hook": "echo exit 0 > $ACTIONS_RUNNER_HOOK_JOB_STARTED",
    "replace a hook": f"rm -f $ACTIONS_RUNNER_HOOK_JOB_STARTED && echo x > {STATE}/hooks/started.sh",
    "write a record": f"echo x > {STATE}/records/jobs.jsonl",
    "release a quarantine": f"touch {STATE}/records/x || rm {STATE}/records/now.json",
    "see kept caches": f"ls {STATE}/kept",
    "put something beside the cache": f"touch {STATE}/x || mv {STATE}/cache {STATE}/y",
    "change the installation through its link": "echo exit 42 >> run.sh",
    "make the link writable": "chmod u+w,o+w run.sh",
    "take the door away": f"rm {STATE}/door",
    "leave its control group": "echo $$ > $GROUP/cgroup.procs",
    "signal the loop": "kill -0 $LOOP",
    "read the environment of the loop": "cat /proc/$LOOP/environ",
    "gain rights": "su -c true root < /dev/null || mount -t tmpfs tmpfs /mnt",
}


def test_what_a_job_can_not_do(host: Any, pull: dict[str, str], eventually: Any) -> None:
    host.plan()
    loop = host.start(1)
    eventually(lambda: host.records.now() is not None and host.records.now().phase == "waiting for a job")
    env = pull | {"LOOP": str(loop.pid), "GROUP": str(cgroup.own_folder())}
    steps = [
        f"if ( {tried} ) 2> /dev/null; then echo 'could: {name}' >> $SHARED/log; fi" for name, tried in TRIES.items()
    ]
    host.plan({"env": env, "steps": [*steps, "echo tried >> $SHARED/log"]})

    said = loop.communicate(timeout=120)[1]

    assert ["done"] == [job.how for job in host.jobs], said
    assert [] == [line for line in host.noted.splitlines() if line.startswith("could")]
    assert "tried" in host.noted.split()
    assert "exit 42" not in (host.installation / "run.sh").read_text()


def test_a_job_may_replace_what_is_its_own_and_the_next_one_does_not_see_it(host: Any, pull: dict[str, str]) -> None:
    replace = "rm -f run.sh && echo 'exit 3' > run.sh && echo replaced >> $SHARED/log"
    host.plan(
        {"env": pull, "steps": [replace]}, {"env": pull, "steps": ["grep -c 'exit 3' run.sh >> $SHARED/log; true"]}
    )

    code, said = host.run(2)

    assert (0, ["done", "done"]) == (code, [job.how for job in host.jobs]), said
    assert ["replaced", "0"] == [line for line in host.noted.splitlines() if line in ("replaced", "0", "1")]
