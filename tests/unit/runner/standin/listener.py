"""A stand-in for GitHub's Runner.Listener and Runner.Worker: takes its configuration, and plays one job as a file says.

`plan.json` in the shared folder holds a list of jobs; each start takes the next. A job: `env` (GITHUB_… variables),
`steps` (commands of bash; those under `always` run after a failure too, as in GitHub's runner), and what goes wrong
(`crash`, `deprecated`, `hookless`).
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARED = Path((HERE / "shared").read_text().strip())  # a folder that outlives the copy of the runner


def called(name):
    """Set this process's name, as /proc shows it."""
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def note(text):
    """A line for the test to read."""
    with (SHARED / "log").open("a") as file:
        file.write(f"{text}\n")


def next_job():
    """The next job of the plan; it waits for one, as GitHub's runner does."""
    path = SHARED / "plan.json"
    while not (plan := json.loads(path.read_text())):
        time.sleep(0.05)
    (SHARED / "plan.json.new").write_text(json.dumps(plan[1:]))
    os.replace(SHARED / "plan.json.new", path)
    return plan[0]


def hook(kind, env):
    """Call a hook as GitHub's runner does; its exit code."""
    return subprocess.run(["/bin/bash", "-e", os.environ[f"ACTIONS_RUNNER_HOOK_JOB_{kind}"]], env=env).returncode


def worker(job):
    """Play the steps; the worker's own exit code is the job's."""
    called("Runner.Worker")
    env = {**os.environ, **job["env"], "SHARED": str(SHARED), "WORKER": str(os.getpid())}
    failed = False if job.get("hookless") else hook("STARTED", env) != 0
    for step in job.get("steps", ()):
        if not failed:
            failed = subprocess.run(["/bin/bash", "-c", step], env=env).returncode != 0
    for step in job.get("always", ()):
        subprocess.run(["/bin/bash", "-c", step], env=env)
    if not job.get("hookless"):
        hook("COMPLETED", env)
    return int(failed)


def main():
    """Listen, and give the one job to a worker."""
    called("Runner.Listener")
    config = os.environ.pop("ACTIONS_RUNNER_INPUT_JITCONFIG", "")
    job = next_job()
    note(f"config {config}")
    (HERE / ".credentials").write_text(config)
    if job.get("deprecated"):
        return 7
    if job.get("crash"):
        print("Unhandled exception: the runner fell over", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    pid = os.fork()
    if pid == 0:
        os._exit(worker(job))
    status = os.waitpid(pid, 0)[1]
    note(f"job ended {status}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
