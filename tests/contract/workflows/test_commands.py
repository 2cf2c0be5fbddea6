"""`/kernelci …` comments from the comment to the answer: commands.yml and profile.yml, played by act."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import acting  # beside this file; conftest.py makes it importable
import pytest

pytestmark = [pytest.mark.slow, acting.needs_act]
KERNEL = "kernels/softmax/mine.py"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A pull request with one kernel that ends at the first rung; its head is where GitHub keeps it."""
    folder = acting.repository(tmp_path / "repository")
    acting.git(folder, "checkout", "--quiet", "-b", "change")
    text = (folder / "kernels" / "softmax" / "triton.py").read_text()
    (folder / KERNEL).write_text(text.replace("def softmax(", "def softmax_("))
    acting.commit(folder, "change")
    acting.git(folder, "update-ref", "refs/pull/7/head", "change")
    acting.git(folder, "checkout", "--quiet", "main")
    return folder


@pytest.fixture
def hub(standin: ModuleType, repository: Path) -> Iterator[Any]:
    """A GitHub that knows this pull request, its finished run and its people."""
    found = standin.GitHub()
    server = standin.serve(found)
    head = acting.git(repository, "rev-parse", "change")
    found.open_pull(head, [(KERNEL, "added")], branch="change")
    found.permissions["writer"] = "write"
    run = found.start_run(head, branch="change")["workflow_run"]["id"]
    check = {"id": 5, "name": "kernelci", "head_sha": head, "status": "completed", "conclusion": "failure"}
    found.checks.append({**check, "external_id": f"{run}.1", "output": {}, "annotations": []})
    yield found
    server.shutdown()
    server.server_close()


def _said(hub: Any, repository: Path, scratch: Path, body: str, who: str) -> str:
    """Play a comment; what it is answered."""
    number = hub.say(body, who)
    event = {
        "action": "created",
        "comment": {"id": number, "body": body, "user": {"login": who}},
        "issue": {"number": 7, "user": {"login": "author"}, "pull_request": {"url": "x"}},
        "repository": {"full_name": acting.NAME, "name": "kernels", "owner": {"login": "octo-org"}},
    }
    played = acting.play(repository, event, scratch, "commands.yml", STANDIN_API=hub.url)
    assert 0 == played.code, played.log[-6000:]
    (answer,) = [each["body"] for each in hub.comments if each["body"].startswith(f"<!-- kernelci:answer {number} ")]
    return str(answer)


def test_a_profile_from_the_comment_to_its_answer(hub: Any, repository: Path, tmp_path: Path) -> None:
    assert "has been asked for" in _said(hub, repository, tmp_path / "asked", "/kernelci profile softmax/*", "writer")
    (dispatched,) = hub.dispatched
    head = acting.git(repository, "rev-parse", "change")
    assert ("profile.yml", "main", head, "softmax/*") == (
        dispatched["workflow"], dispatched["ref"], dispatched["inputs"]["sha"], dispatched["inputs"]["profile"],
    )  # fmt: skip
    # act gives every run the number 1; GitHub knows it, and has no artifact of it.
    hub.start_run(acting.git(repository, "rev-parse", "main"), branch="main", run=1)
    event = {"inputs": dispatched["inputs"], "ref": "refs/heads/main", "repository": {"full_name": acting.NAME}}

    played = acting.play(repository, event, tmp_path / "play", "profile.yml", STANDIN_API=hub.url)

    assert "FAILED" in played.log, played.log[-6000:]
    assert played.archive("kernelci-report-1").is_file()
    assert 0 != played.code  # the kernel failed, and that is no reason to stay silent
    assert hub.comments[-1]["body"].startswith(
        "<!-- kernelci:profile 1.1 -->\n### Profile of <code>softmax/&#42;</code>"
    )


def test_rerun_by_who_may_and_by_who_may_not(hub: Any, repository: Path, tmp_path: Path) -> None:
    assert "Only people with write" in _said(hub, repository, tmp_path / "no", "/kernelci rerun", "stranger")
    assert [] == hub.rerun
    assert "is repeated" in _said(hub, repository, tmp_path / "yes", "/kernelci rerun", "writer")
    assert [max(hub.runs)] == hub.rerun
