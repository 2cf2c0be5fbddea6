"""A pull request's GPU time: what its runs took, what is left, and what is said of it."""

import datetime
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kernelci import feedback as records
from kernelci.errors import TokenError
from kernelci.hub import feedback, spending
from kernelci.hub.client import Client, Patience
from kernelci.model import Budget

KERNELS = [("kernels/softmax/tilelang.py", "modified")]
QUICK = Patience(attempts=2, backoff_s=0.01, longest_s=0.01, pace_s=0)
GRANTED = b"[budget]\ngpu_minutes = 60\nruns = 3\n"
START = datetime.datetime(2026, 1, 30, 12, tzinfo=datetime.UTC)


@pytest.fixture
def client(github: Any, standin: Any) -> Client:
    github.open_pull(standin.SHA, KERNELS)
    github.contents["kernelci.toml"] = GRANTED
    return Client(standin.REPOSITORY, github.token, github.url, QUICK)


def took(name: str, minutes: float, **more: Any) -> dict[str, Any]:
    """A job that took so long."""
    end = START + datetime.timedelta(minutes=minutes)
    times = {"started_at": START.isoformat(), "completed_at": end.isoformat()}
    return {"name": name, "status": "completed", "conclusion": "success", **times, **more}


@pytest.fixture
def ran(github: Any, standin: Any) -> Any:
    """A run of the pull request with these jobs."""

    def start(*jobs: dict[str, Any], **more: Any) -> int:
        number = github.start_run(standin.SHA, **more)["workflow_run"]["id"]
        github.jobs[number] = list(jobs)
        return int(number)

    return start


def left(client: Client) -> Budget | None:
    return feedback.fetch(client, 7).budget


def test_nothing_is_taken_yet(client: Client) -> None:
    assert Budget(60, 60, 3, 3) == left(client)


def test_jobs_on_a_gpu_count_under_whatever_name_calls_them(client: Client, ran: Any) -> None:
    ran(took("compile", 30), took("gpu (0, a)", 10), took("gpu (1, b)", 5))
    ran(took("mine / gpu", 4), took("kernels / report", 20), took("x / second", 1))

    assert Budget(60, 40, 3, 1) == left(client)


def test_attempts_count_each(client: Client, ran: Any) -> None:
    ran(took("gpu", 5, run_attempt=1), took("gpu", 5, run_attempt=2))

    assert Budget(60, 50, 3, 1) == left(client)


def test_what_never_had_a_runner_is_free(client: Client, ran: Any) -> None:
    ran(took("gpu", 5, conclusion="skipped"), took("gpu", 5, status="queued", conclusion=None, completed_at=None))

    assert Budget(60, 60, 3, 3) == left(client)


def test_a_job_under_way_counts_so_far(client: Client, ran: Any) -> None:
    ran(took("gpu", 0, status="in_progress", conclusion=None, completed_at=None))

    assert (0, 2) == ((found := left(client)).gpu_minutes_left, found.runs_left)


def test_other_branches_and_forks_are_others(client: Client, ran: Any) -> None:
    ran(took("gpu", 5), branch="another")
    ran(took("gpu", 5), head="stranger/kernels")

    assert Budget(60, 60, 3, 3) == left(client)


def test_without_a_budget_no_job_is_asked_for(client: Client, github: Any, ran: Any) -> None:
    github.contents["kernelci.toml"] = b""
    ran(took("gpu", 5))

    assert left(client) is None
    assert [] == [path for path in github.made("GET") if path.endswith("/jobs")]


def test_a_spent_budget_is_a_maintainers_to_extend(client: Client, ran: Any) -> None:
    ran(took("gpu", 61))

    found = feedback.fetch(client, 7)

    assert ("maintainer", True) == (found.actions[-1].who, spending.MORE in found.actions[-1].do)
    assert "budget: 0 of 60 GPU minutes and 2 of 3 runs are left" in feedback.text(found).splitlines()
    assert '"gpu_minutes_left": 0' in records.encode(found)


def test_a_broken_configuration_of_the_base_is_no_budget(client: Client, github: Any) -> None:
    github.contents["kernelci.toml"] = b"budget = 7\n"

    assert left(client) is None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose commit grants a budget, and whose working tree, the change, grants more."""
    (tmp_path / "kernelci.toml").write_bytes(GRANTED)
    by = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for arguments in (("init", "-q"), ("add", "--all"), (*by, "commit", "-q", "-m", "base")):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    (tmp_path / "kernelci.toml").write_text("[budget]\nruns = 1000\n")
    return tmp_path


@pytest.fixture
def verb(github: Any, standin: Any, client: Client, checkout: Path, monkeypatch: Any) -> Any:
    """The verb as W1's gate calls it: what it prints, and its exit code."""
    from click.testing import CliRunner

    from kernelci.cli import cli

    monkeypatch.setenv("GITHUB_TOKEN", github.token)
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.delenv("GITHUB_EVENT_PATH", raising=False)

    def call(*arguments: str) -> tuple[str, int]:
        place = f"{standin.REPOSITORY}#7"
        done = CliRunner().invoke(
            cli, ["--root", str(checkout), "budget", place, *arguments], standalone_mode=False, catch_exceptions=False
        )
        return done.output, done.return_value

    return call


def test_the_gate_goes_by_the_bases_configuration(verb: Any, ran: Any) -> None:
    for _ in range(3):
        ran(took("gpu", 1))

    text = "57 of 60 GPU minutes and 0 of 3 runs are left"
    assert (f"{text}: {spending.MORE}\n", 3) == verb("--base", "HEAD")
    assert (f"{text}: {spending.MORE}\n", 3) == verb()


def test_the_gate_lets_pass_while_something_is_left(verb: Any, ran: Any) -> None:
    ran(took("gpu", 1))

    assert ("59 of 60 GPU minutes and 2 of 3 runs are left\n", 0) == verb("--base", "HEAD")


def test_the_gate_takes_the_pull_request_from_its_event(
    verb: Any, ran: Any, github: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    ran(took("gpu", 1))
    path = tmp_path / "event.json"
    path.write_text(json.dumps({"action": "opened", "number": 7, "pull_request": github.shown_pull(7, "pull_full")}))
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(path))
    github.denied.append(("GET", "pulls"))

    assert ("59 of 60 GPU minutes and 2 of 3 runs are left\n", 0) == verb("--base", "HEAD")


def test_the_gate_asks_nobody_where_there_is_no_budget(
    verb: Any, checkout: Path, github: Any, monkeypatch: Any
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    by = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    (checkout / "kernelci.toml").write_text("")
    subprocess.run(["git", "-C", str(checkout), *by, "commit", "-q", "-a", "-m", "none"], check=True)

    assert ("no budget is set\n", 0) == verb("--base", "HEAD")
    assert [] == github.requests


def test_the_gate_stays_shut_where_github_does_not_let_it_look(verb: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "another")

    with pytest.raises(TokenError):
        verb("--base", "HEAD")
