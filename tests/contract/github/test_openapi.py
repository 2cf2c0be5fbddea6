"""Every request that we send, and every answer that the stand-in gives, held against GitHub's own API description."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests

from kernelci.hub import feedback, profiled
from kernelci.hub.client import Client, Patience
from kernelci.model import Change

KERNELS = [("kernels/softmax/tilelang.py", "modified")]
QUICK = Patience(attempts=2, backoff_s=0.01, pace_s=0)


@pytest.fixture(autouse=True)
def fresh(proxied: tuple[Any, str], standin: ModuleType) -> None:
    """The same proxy, an empty GitHub."""
    hub = proxied[0]
    hub.__dict__.update({key: value for key, value in standin.GitHub().__dict__.items() if key not in ("url", "_lock")})
    hub.open_pull(standin.SHA, KERNELS)


def run(hub: Any, standin: ModuleType, report: Any, **more: Any) -> Any:
    from kernelci import results

    event = hub.start_run(standin.SHA, **more)
    number, attempt = event["workflow_run"]["id"], event["workflow_run"]["run_attempt"]
    hub.upload(number, f"kernelci-report-{attempt}", standin.zipped({"results.json": results.encode(report)}))
    hub.upload(number, f"kernelci-dumps-{attempt}", standin.zipped({"softmax/k.ptx": b"ptx"}))
    return event


def test_the_proxy_refuses_what_the_description_forbids(proxied, standin) -> None:
    hub, url = proxied
    head = {"Authorization": f"Bearer {hub.token}"}

    answer = requests.post(f"{url}/repos/{standin.REPOSITORY}/check-runs", json={"name": 7}, headers=head, timeout=30)

    assert (422, []) == (answer.status_code, hub.checks)


def test_publish(proxied, standin, post, reports) -> None:
    hub, url = proxied
    event = run(hub, standin, reports.one_wrong())

    post({**event, "action": "requested"}, url=url)
    posted = post(event, url=url)

    assert ("failure", 1, "failure") == (posted.conclusion, len(hub.comments), hub.checks[0]["conclusion"])
    assert 1 == len(hub.checks[0]["annotations"])


def test_publish_asks_who_set_the_label_of_a_second_referee(proxied, standin, post, reports) -> None:
    import msgspec

    from kernelci.model import Second

    hub, url = proxied
    hub.permissions["ada"] = "maintain"
    hub.label("kernelci:judge", "ada", "2026-11-30T10:00:08Z")
    hub.label("kernelci:gpu", "bob", "2026-11-30T10:00:09Z", event="unlabeled")
    event = run(hub, standin, msgspec.structs.replace(reports.one_wrong(), second=Second(by="x")))
    event["workflow_run"] |= {"actor": hub.user("ada"), "created_at": "2026-11-30T10:00:10Z"}

    post(event, url=url)

    assert "Allowed by <code>ada</code>" in hub.comments[0]["body"]


def test_publish_updates_and_supersedes(proxied, standin, post, reports) -> None:
    hub, url = proxied
    hub.login = "kernel-bot"
    for make in (reports.all_green, reports.one_wrong, reports.all_green):
        post(run(hub, standin, make()), url=url)

    assert 2 == len(hub.comments)


def test_publish_repeats_a_broken_run(proxied, standin, post, reports) -> None:
    hub, url = proxied
    stop = reports.stop("run", reports.Finding("gpu-sick", "no answer"))
    report = reports.report((reports.kernel("softmax/tilelang", reports.compiled("sm_90a"), stop),))

    assert "in_progress" == post(run(hub, standin, report), url=url).conclusion
    assert 1 == len(hub.rerun)


def test_feedback(proxied, standin, post, reports, tmp_path: Path) -> None:
    hub, url = proxied
    post(run(hub, standin, reports.one_wrong()), url=url)

    found = feedback.fetch(Client(standin.REPOSITORY, hub.token, url, QUICK), 7, folder=tmp_path)

    assert ("reported", "failure", 1) == (found.state, found.remote.conclusion, len(found.artifacts))


@pytest.mark.parametrize(
    "line", ["rerun", "profile", "profile softmax/tilelang", "accept a1a1a1a1 looked at it", "dance"]
)
def test_commands(line: str, proxied, standin, post, say, reports) -> None:
    hub, url = proxied
    hub.files[7].append({"filename": "references/softmax.py", "status": "modified"})
    post(run(hub, standin, reports.all_green()), url=url)
    hub.permissions["owner"] = "admin"

    say(f"/kernelci {line}", "owner", url=url, hub=hub)

    assert 3 == len(hub.comments)
    assert hub.comments[-1]["body"].startswith("<!-- kernelci:answer")


def test_a_budget(proxied, standin, post, reports) -> None:
    hub, url = proxied
    hub.contents["kernelci.toml"] = b"[budget]\nruns = 2\n"
    number = run(hub, standin, reports.one_wrong())["workflow_run"]["id"]
    hub.jobs[number] = [{"name": "kernels / gpu (0)", "status": "completed", "conclusion": "success"}]

    found = feedback.fetch(Client(standin.REPOSITORY, hub.token, url, QUICK), 7)

    assert ("reported", 1) == (found.state, found.budget.runs_left)


def test_the_answer_to_a_profile(proxied, standin, reports, tmp_path: Path) -> None:
    hub, url = proxied
    change = reports.msgspec.structs.replace(reports.all_green(), change=Change("b" * 40, standin.SHA))
    number = run(hub, standin, change)["workflow_run"]["id"]
    path = tmp_path / "event.json"
    inputs = {"pull": "7", "sha": standin.SHA, "profile": "changed"}
    path.write_text(json.dumps({"inputs": inputs, "repository": {"full_name": standin.REPOSITORY}}))
    environ = {"GITHUB_EVENT_PATH": str(path), "GITHUB_TOKEN": hub.token, "GITHUB_API_URL": url}

    profiled.tell({**environ, "GITHUB_RUN_ID": str(number), "GITHUB_RUN_ATTEMPT": "1"}, patience=QUICK)

    assert "3 kernels passed every rung that ran" in hub.comments[-1]["body"]


def test_comments_over_the_limit_are_refused_by_the_stand_in(proxied, standin) -> None:
    """The description knows no such limit."""
    hub, _ = proxied
    head = {"Authorization": f"Bearer {hub.token}"}

    answer = requests.post(
        f"{hub.url}/repos/{standin.REPOSITORY}/issues/7/comments", json={"body": "x" * 65_537}, headers=head, timeout=30
    )

    assert (422, []) == (answer.status_code, hub.comments)
