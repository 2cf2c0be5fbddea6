"""The verbs as a workflow or an agent calls them: exit codes, messages, and nothing heavy loaded."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelci.reasons import REASONS

ROOT = Path(__file__).resolve().parents[3]
CHILD = """
import sys
from kernelci.__main__ import main
try:
    main()
finally:
    heavy = {"torch", "triton", "tilelang", "cutlass", "cuda", "numpy", "scipy"} & set(sys.modules)
    assert not heavy, heavy
"""
NO_TOKEN = f"error[token]: no token: GITHUB_TOKEN is not set\n  next: {REASONS['token'].next_step}\n"
Verb = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def verb(github: Any, tmp_path: Path) -> Verb:
    """Run a verb in a process of its own."""

    def run(*arguments: str, event: Any = None, **environ: str) -> "subprocess.CompletedProcess[str]":
        path = tmp_path / "event.json"
        path.write_text(json.dumps(event))
        known = {"GITHUB_EVENT_PATH": str(path), "GITHUB_TOKEN": github.token, "GITHUB_API_URL": github.url}
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "GH_"))}
        return subprocess.run(
            [sys.executable, "-c", CHILD, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60,
            env={**plain, "PYTHONPATH": str(ROOT), **known, **environ}, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def opened(github: Any, standin: Any) -> None:
    github.open_pull(standin.SHA, [("kernels/softmax/triton.py", "modified")])


def test_publish_says_what_it_posted(github, opened, run_of, reports, verb: Verb) -> None:
    done = verb("publish", event=run_of(reports.all_green()))

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("pull request 7: success: 3 kernels passed every rung that ran. https://github.com/")


def test_publishing_a_failure_is_no_failure_of_publish(github, opened, run_of, reports, verb: Verb) -> None:
    assert 0 == verb("publish", event=run_of(reports.one_wrong())).returncode


def test_publish_without_an_event(verb: Verb) -> None:
    done = verb("publish", GITHUB_EVENT_PATH="")

    assert (2, "error[event]: GITHUB_EVENT_PATH is not set\n  next: this command runs in a GitHub workflow\n") == (
        done.returncode,
        done.stderr,
    )


def test_publish_without_a_token(opened, run_of, reports, verb: Verb) -> None:
    done = verb("publish", event=run_of(reports.all_green()), GITHUB_TOKEN="")

    assert (2, NO_TOKEN) == (done.returncode, done.stderr)


def test_publish_of_what_is_superseded(github, opened, run_of, reports, verb: Verb) -> None:
    github.pulls[7]["state"] = "closed"

    done = verb("publish", event=run_of(reports.all_green()))

    assert 3 == done.returncode
    assert done.stderr.startswith("error[superseded]: no open pull request from topic")


def test_publish_of_a_run_without_a_report(github, standin, opened, verb: Verb) -> None:
    done = verb("publish", event=github.start_run(standin.SHA))

    assert 4 == done.returncode
    assert done.stderr.startswith("error[artifact-missing]: ")


def test_feedback_is_what_the_report_gives_locally(opened, run_of, reports, verb: Verb, tmp_path: Path) -> None:
    from kernelci import results

    run_of(reports.one_wrong())
    (tmp_path / "results.json").write_bytes(results.encode(reports.one_wrong()))

    remote = verb("feedback", "octo-org/kernels#7", "--json")
    local = verb("report", str(tmp_path), "--format", "feedback")

    found = json.loads(remote.stdout)
    assert (1, 0) == (remote.returncode, local.returncode)
    assert 7 == found.pop("remote")["pull"]
    assert json.loads(local.stdout) == found


def test_feedback_with_artifacts(github, standin, opened, run_of, reports, verb: Verb, tmp_path: Path) -> None:
    run = run_of(reports.one_wrong())["workflow_run"]["id"]
    github.upload(run, "kernelci-dumps-1", standin.zipped({"softmax/k.ptx": b"ptx"}))

    done = verb("feedback", "octo-org/kernels#7", "--artifacts", "got")

    assert f"artifact: got/a1a1a1a1a1-{run}-1/kernelci-dumps/softmax/k.ptx" in done.stdout.splitlines()


def test_answer(github, standin, opened, run_of, reports, verb: Verb) -> None:
    issue = {"number": 7, "user": {"login": "author"}, "pull_request": {}}
    said = {"id": 5, "user": {"login": "stranger"}, "body": "/kernelci rerun"}
    event = {"action": "created", "comment": said, "issue": issue, "repository": {"full_name": standin.REPOSITORY}}

    done = verb("answer", event=event)

    assert (0, "Only people with write permission can ask for `rerun`.\n") == (done.returncode, done.stdout)
    assert 1 == len(github.comments)


VERBS = (("feedback", "octo-org/kernels#7"), ("budget", "octo-org/kernels#7"), ("answer",))
SAID = {
    "action": "created",
    "comment": {"id": 5, "user": {"login": "stranger"}, "body": "/kernelci rerun"},
    "issue": {"number": 7, "user": {"login": "author"}, "pull_request": {}},
    "repository": {"full_name": "octo-org/kernels"},
}


@pytest.mark.parametrize("arguments", VERBS, ids=lambda arguments: arguments[0])
def test_no_token(arguments: tuple[str, ...], opened, verb: Verb) -> None:
    done = verb(*arguments, event=SAID, GITHUB_TOKEN="")

    assert (2, "", NO_TOKEN) == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("arguments", VERBS, ids=lambda arguments: arguments[0])
def test_a_token_that_is_not_valid(arguments: tuple[str, ...], github, opened, verb: Verb) -> None:
    done = verb(*arguments, event=SAID, GITHUB_TOKEN="stale")

    assert (2, [], True) == (done.returncode, github.comments, done.stderr.startswith("error[token]: "))
    assert "the token is not valid" in done.stderr


@pytest.mark.parametrize("event", [{"ref": "refs/heads/main", "commits": []}, {"inputs": {"pull": "x"}}, [], "text"])
def test_answer_to_an_event_of_another_kind(event: Any, github, verb: Verb) -> None:
    done = verb("answer", event=event, GITHUB_RUN_ID="1", GITHUB_RUN_ATTEMPT="1")

    assert (2, [], True) == (done.returncode, github.comments, done.stderr.startswith("error[event]: "))
