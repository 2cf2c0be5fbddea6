"""The whole loop, with a stand-in for GitHub's runner, on real processes."""

import contextlib
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelci.runner import sweep

AS_ROOT = os.geteuid() == 0
Eventually = Callable[[Callable[[], Any]], Any]
LEAVES = "setsid nohup bash -c \"trap '' TERM HUP; exec -a Runner.Listener sleep 1000\" > /dev/null 2>&1 &"


def _how(host: Any) -> list[str]:
    return [job.how for job in host.jobs]


def _phase(host: Any) -> str:
    now = host.records.now()
    return now.phase if now is not None else ""


def _of_jobs(host: Any) -> list[str]:
    """Command lines of all processes that a job of this host started."""
    mark, found = str(host.shared).encode(), []
    for pid in sweep.table():
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_a_job(host: Any, pull: dict[str, str]) -> None:
    host.plan({"env": pull, "steps": ["echo ran in $HOME >> $SHARED/log"]})

    code, said = host.run()

    assert 0 == code, said
    assert "ran in /" in host.noted
    assert [("done", False, 0, ())] == [(job.how, job.trusted, job.leftovers, job.faults) for job in host.jobs], said
    assert ["gpu:h200", "sm_90a", "gpus:1", "driver:570"] == [
        label
        for label in host.records.now().labels
        if label[:2] in ("gp", "sm", "dr") and label not in ("gpu", "driver:570.86.15")
    ]


def test_a_job_sees_its_own_home_and_temporary_files_and_no_configuration_in_its_environment(
    host: Any, pull: dict[str, str]
) -> None:
    host.plan({"env": pull, "steps": ["env > $SHARED/env; grep NoNewPrivs /proc/self/status >> $SHARED/env"]})

    host.run()
    env = (host.shared / "env").read_text()

    assert "config-of-" not in env
    assert f"TMPDIR={host.state}/jobs/" in env
    assert "NoNewPrivs:\t1" in env


def test_a_refused_job_runs_no_step_not_even_those_that_always_run(host: Any, pull: dict[str, str]) -> None:
    host.options["stop_grace_s"] = 10.0  # the stand-in ends by itself, when it has told
    host.options["actors"] = ["somebody-else"]
    host.plan({"env": pull, "steps": ["echo step >> $SHARED/log"], "always": ["echo always >> $SHARED/log"]})

    code, said = host.run()

    assert (0, ["refused"]) == (code, _how(host)), said
    assert "actor 'octocat' is not admitted" in host.jobs[0].why
    assert ("job ended 9", []) == (
        host.noted.splitlines()[-1],
        [word for word in host.noted.split() if word in ("step", "always")],
    )
    assert 0 == host.records.now().failures


def test_a_job_over_its_time_is_ended_and_its_runner_can_say_so(host: Any, pull: dict[str, str]) -> None:
    host.options["stop_grace_s"] = 10.0  # the stand-in ends by itself, when it has told
    host.options["time_limit_s"] = 0.5
    step = "trap '' TERM INT; while true; do sleep 0.05; done"
    host.plan({"env": pull, "steps": [step], "always": ["echo always >> $SHARED/log"]})

    code, said = host.run()

    assert (0, ["time limit"]) == (code, _how(host)), said
    assert "job ended 9" == host.noted.splitlines()[-1]
    assert [] == _of_jobs(host)


def test_a_killed_job_of_a_pull_request_is_not_the_hosts_failure(
    host: Any, pull: dict[str, str], night: dict[str, str]
) -> None:
    killed = {"steps": ["kill -9 $WORKER; sleep 60"]}
    host.plan({"env": pull, **killed}, {"env": night, **killed}, {"env": pull, "steps": ["true"]})

    code, said = host.run(3)

    assert (0, ["broke off", "broke off", "done"]) == (code, _how(host)), said
    assert 1 == said.count("failure ")  # the night's
    assert [] == _of_jobs(host)


def test_a_runner_that_crashes_puts_the_host_into_quarantine_until_it_is_released(
    host: Any, pull: dict[str, str]
) -> None:
    host.plan(*[{"crash": True}] * 3, {"env": pull})

    code, said = host.run(4)

    assert (4, ["no job"] * 3) == (code, _how(host)), said
    found = host.records.quarantined()
    assert found.reason.startswith("3 failures in a row")
    assert "the runner fell over" in found.reason
    assert 1 == sum("kernelci: quarantine:" in line for line in said.splitlines())
    assert host.records.release()
    assert (0, "done") == (host.run()[0], _how(host)[-1])


def test_a_runner_that_waits_for_a_release_goes_on_by_itself(
    host: Any, pull: dict[str, str], eventually: Eventually
) -> None:
    host.gpu(vital={"memory_errors": 0})
    host.plan({"env": pull, "steps": ["until [ -e $SHARED/go ]; do sleep 0.05; done"]}, {"env": pull})

    process = host.start(None)
    eventually(lambda: _phase(host) == "running")
    host.gpu(vital={"memory_errors": 0, "xids": [79]})
    (host.shared / "go").touch()
    eventually(lambda: _phase(host) == "quarantine")
    sick = host.records.quarantined().reason
    host.gpu(vital={"memory_errors": 0})
    host.records.release()
    eventually(lambda: _how(host) == ["done", "done"])
    process.terminate()
    said = process.communicate(timeout=120)[1]

    assert "the driver reported Xid 79" in sick
    assert ("released from quarantine" in said, 0) == (True, process.returncode)


def test_a_gpu_that_becomes_sick_while_the_runner_waits_takes_no_job(
    host: Any, pull: dict[str, str], eventually: Eventually
) -> None:
    host.plan()
    process = host.start(1)
    eventually(lambda: _phase(host) == "waiting for a job")
    host.gpu(used_bytes=60 * 2**30)
    host.plan({"env": pull, "steps": ["echo step >> $SHARED/log"]})

    process.communicate(timeout=120)

    assert ["refused"] == _how(host)
    assert "60.0 GiB of its memory are in use" in host.jobs[0].why
    assert "step" not in host.noted.split()


def test_a_version_that_github_no_longer_serves_is_told_at_once(host: Any) -> None:
    host.options["version"] = "2.300.0"
    host.plan({"deprecated": True}, {})

    code, _ = host.run(2)

    assert 4 == code
    assert "GitHub no longer serves version 2.300.0" in host.records.quarantined().reason


def test_what_a_job_leaves_running_is_ended(host: Any, pull: dict[str, str]) -> None:
    host.plan({"env": pull, "steps": [LEAVES, f"({LEAVES}) &"]}, {"env": pull})

    code, said = host.run(2)

    assert (0, ["done", "done"], True, 0) == (
        code, _how(host), host.jobs[0].leftovers >= 2, host.jobs[1].leftovers,
    ), said  # fmt: skip
    assert [] == _of_jobs(host)


def test_a_job_that_did_not_ask_is_ended(host: Any, pull: dict[str, str]) -> None:
    host.options["admission_s"] = 0.3
    host.plan({"env": pull, "hookless": True, "steps": ["sleep 60"]})

    code, said = host.run()

    assert (0, ["not admitted"]) == (code, _how(host)), said
    assert "failure 1 of 3" in said


def test_only_the_job_is_heard_and_only_once(host: Any, pull: dict[str, str], eventually: Eventually) -> None:
    again = "GITHUB_ACTOR=root timeout 3 bash $ACTIONS_RUNNER_HOOK_JOB_STARTED >> $SHARED/log; true"
    host.plan()
    process = host.start(1)
    eventually(lambda: _phase(host) == "waiting for a job")
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(10)
        stranger.connect(str(host.state / "door"))
        heard = b""
        with contextlib.suppress(ConnectionError):  # it is closed, read or unread
            stranger.sendall(b'{"kind": "started", "claim": {}}\n')
            heard = stranger.recv(100)
    host.plan({"env": pull, "steps": [again]})
    said = process.communicate(timeout=120)[1]

    assert (b"", ["done"]) == (heard, _how(host)), said
    assert "is not of the job, and is not heard" in said
    assert "a runner takes one job" in host.noted


def test_a_broker_that_is_away_and_a_github_that_is_away(host: Any, pull: dict[str, str]) -> None:
    host.options |= {"away": 5, "failures": 2}
    host.plan({"env": pull})

    assert (0, ["done"]) == (host.run()[0], _how(host))

    host.options["broker"] = str(host.folder / "socket")
    code, _ = host.run()
    assert (4, True) == (code, "No such file" in host.records.quarantined().reason)


@pytest.mark.parametrize(("skew_s", "which"), [(400.0, "behind"), (-400.0, "ahead of")])
def test_a_clock_that_is_wrong_takes_no_jobs(host: Any, pull: dict[str, str], skew_s: float, which: str) -> None:
    host.options |= {"skew_s": skew_s, "failures": 2}
    host.plan({"env": pull})

    code, said = host.run()

    assert (4, []) == (code, host.jobs), said
    assert f"s {which} GitHub's" in host.records.quarantined().reason


def test_stopping_ends_the_job(host: Any, pull: dict[str, str], eventually: Eventually) -> None:
    host.plan({"env": pull, "steps": ["sleep 60"]})
    process = host.start(None)
    eventually(lambda: _phase(host) == "running")

    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=120)[1]

    assert (0, ["stopped"], "stopped", []) == (process.returncode, _how(host), _phase(host), _of_jobs(host)), said
    assert host.group is None or not host.group.exists()


@pytest.mark.skipif(not AS_ROOT, reason="without a user of its own a killed loop's jobs are systemd's to end")
def test_a_loop_that_was_killed_leaves_nothing_to_the_next(
    host: Any, pull: dict[str, str], eventually: Eventually
) -> None:
    host.plan({"env": pull, "steps": [LEAVES, "sleep 60"]}, {"env": pull})
    process = host.start(None)
    eventually(lambda: _phase(host) == "running" and len(_of_jobs(host)) >= 2)
    process.kill()
    process.communicate()
    left = len(_of_jobs(host))

    code, said = host.run()

    assert (True, 0, ["done"], []) == (left > 0, code, _how(host), _of_jobs(host)), said


def test_two_loops_do_not_share_a_folder(host: Any, eventually: Eventually) -> None:
    host.plan()
    first = host.start(None)
    eventually(lambda: _phase(host) == "waiting for a job")

    code, said = host.run()
    first.terminate()
    first.communicate(timeout=120)

    assert (2, True) == (code, "another loop uses" in said)


def test_caches_go_by_trust(host: Any, pull: dict[str, str], night: dict[str, str]) -> None:
    show = "(cd $XDG_CACHE_HOME && grep -s . *) >> $SHARED/log; echo -- >> $SHARED/log"
    write = "echo {0} > $XDG_CACHE_HOME/{1}; true"
    other = pull | {"GITHUB_REF": "refs/pull/8/merge"}
    host.plan(
        {"env": night, "steps": [write.format("base", "of"), "echo x > $XDG_CACHE_HOME/one"]},
        {"env": pull, "steps": [show, write.format("poison", "of"), write.format("mine", "mine")]},
        {"env": other, "steps": [show]},
        {"env": pull, "steps": [show]},
        {"env": night, "steps": [show]},
    )

    code, said = host.run(5)

    lines = [line for line in host.noted.splitlines() if ":" in line or line == "--"]
    shown = [part.split() for part in "\n".join(lines).split("--")[:4]]
    poison = "base" if AS_ROOT else "poison"  # a file that is root's can't be written; else it is a copy
    assert (0, ["done"] * 5) == (code, _how(host)), said
    assert [
        ["of:base", "one:x"], ["of:base", "one:x"], ["mine:mine", f"of:{poison}", "one:x"], ["of:base", "one:x"],
    ] == shown  # fmt: skip
