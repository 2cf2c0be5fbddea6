"""What an agent gets for a pull request: the newest head's state, in the record that a local report gives."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelci import feedback as records
from kernelci.errors import ConfigError, ReportError, TokenError
from kernelci.hub import feedback
from kernelci.hub.client import Client, Patience

KERNELS = [("kernels/softmax/tilelang.py", "modified")]
QUICK = Patience(attempts=2, backoff_s=0.01, longest_s=0.01, pace_s=0)


@pytest.fixture
def client(github: Any, standin: Any) -> Client:
    github.open_pull(standin.SHA, KERNELS)
    return Client(standin.REPOSITORY, github.token, github.url, QUICK)


def test_no_run_yet(client) -> None:
    assert "waiting" == feedback.look(client, 7).feedback.state


def test_a_run_under_way(client, github, standin) -> None:
    event = github.start_run(standin.SHA)
    github.runs[event["workflow_run"]["id"]]["status"] = "in_progress"

    assert "running" == feedback.look(client, 7).feedback.state


def test_a_report_is_the_same_as_locally(client, post, run_of, reports) -> None:
    post(run_of(reports.one_wrong()))

    found = feedback.fetch(client, 7)

    assert "failure" == found.remote.conclusion
    assert records.of(reports.one_wrong()) == msgspec.structs.replace(found, remote=None)


def test_a_report_that_is_not_published_yet(client, run_of, reports) -> None:
    run_of(reports.one_wrong())

    found = feedback.fetch(client, 7)

    assert ("reported", "") == (found.state, found.remote.conclusion)


def test_a_run_without_a_report(client, github, standin) -> None:
    github.start_run(standin.SHA)

    assert "no-report" == feedback.fetch(client, 7).state


def test_a_closed_pull_request(client, github) -> None:
    github.pulls[7]["state"] = "closed"

    assert "closed" == feedback.fetch(client, 7).state


def test_the_newest_head_counts(client, github, post, run_of, reports) -> None:
    post(run_of(reports.one_wrong()))
    github.pulls[7]["head"]["sha"] = "c2" * 20

    assert "waiting" == feedback.look(client, 7).feedback.state


def test_waiting_ends_with_the_report(client, github, standin, run_of, reports, monkeypatch) -> None:
    naps = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 2:
            run_of(reports.all_green())

    monkeypatch.setattr(feedback.time, "sleep", sleep)

    assert ("reported", 2) == (feedback.fetch(client, 7, wait=True).state, len(naps))


def test_artifacts_are_unpacked_once(client, github, standin, run_of, reports, tmp_path: Path) -> None:
    run = run_of(reports.one_wrong())["workflow_run"]["id"]
    github.upload(run, "kernelci-dumps-1", standin.zipped({"softmax/k.ptx": b"ptx", "softmax/k.sass": b"sass"}))
    github.upload(run, "kernelci-dumps-2", standin.zipped({"old": b""}))

    first = feedback.fetch(client, 7, folder=tmp_path).artifacts
    second = feedback.fetch(client, 7, folder=tmp_path).artifacts

    assert first == second
    assert [b"ptx", b"sass"] == [Path(path).read_bytes() for path in first]
    assert 1 == sum("/storage/" not in path for path in github.made("GET") if path.endswith(f"{github._next - 1}/zip"))


def test_hostile_artifacts_leave_nothing_behind(client, github, standin, run_of, reports, tmp_path: Path) -> None:
    run = run_of(reports.one_wrong())["workflow_run"]["id"]
    github.upload(run, "kernelci-dumps-1", standin.zipped({"good": b"", "../../evil": b""}))

    with pytest.raises(ReportError):
        feedback.fetch(client, 7, folder=tmp_path / "in")

    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_agents_loop_over_the_pull_request(client, github, post, run_of, reports) -> None:
    """Wrong, then slower than base, then green, by reports as a GPU host leaves them."""
    github.files[7] = [{"filename": "kernels/softmax/triton.py", "status": "modified"}]
    post(run_of(reports.one_wrong()))
    wrong = feedback.fetch(client, 7)
    post(run_of(reports.against_base()))
    slow = feedback.fetch(client, 7)
    post(run_of(reports.all_green()))
    green = feedback.fetch(client, 7)

    stops = [next(kernel.first_failure for kernel in each.kernels if kernel.first_failure) for each in (wrong, slow)]
    assert [("correctness", "wrong"), ("benchmark", "slower")] == [(each.rung, each.reason) for each in stops]
    assert "kernelci run softmax/triton --rungs benchmark --case 65536x2048-bf16 --base main" == stops[1].reproduce
    assert ("SLOWER", True) == (slow.times[0].verdict, "slower than base" in stops[1].diagnosis)
    assert ["failure", "failure", "success"] == [each.remote.conclusion for each in (wrong, slow, green)]
    assert ([1, 1, 0], ()) == ([feedback.exit_code(each) for each in (wrong, slow, green)], green.actions)


@pytest.mark.parametrize("text", ["", "7", "a/b", "a/b#", "a/b#x", "a/b/c#1", "../b#1/../2", "a/b#1\n"])
def test_what_names_no_pull_request(text: str) -> None:
    with pytest.raises(ConfigError, match="names no pull request"):
        feedback.place(text)


def test_a_pull_request_that_does_not_exist(client) -> None:
    with pytest.raises(TokenError, match="404"):
        feedback.look(client, 99)


@pytest.mark.parametrize(("make", "code"), [("all_green", 0), ("one_wrong", 1), ("broken", 1)])
def test_exit_codes(make: str, code: int, client, run_of, reports) -> None:
    run_of(reports.ALL[make]())

    assert code == feedback.exit_code(feedback.fetch(client, 7))


def test_the_text_is_for_a_terminal(client, run_of, reports) -> None:
    run_of(reports.broken())

    text = feedback.text(feedback.fetch(client, 7))

    assert text.replace("\n", "").isprintable()


def test_the_json_is_read_back_strictly(client, run_of, reports) -> None:
    run_of(reports.one_wrong())

    found = feedback.fetch(client, 7)

    assert found == msgspec.json.decode(records.encode(found), type=records.Feedback)
    assert 1 == json.loads(records.encode(found))["schema_version"]
