"""W1 and W2 one after the other, played by act: three pushes to one pull request against a GitHub that remembers."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import acting  # beside this file; conftest.py makes it importable
import pytest

pytestmark = [pytest.mark.slow, acting.needs_act]
KERNEL = "kernels/softmax/mine.py"


@pytest.fixture(scope="module")
def posted(standin: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """What the pull request showed after each push: wrong, then right, then wrong again."""
    folder = tmp_path_factory.mktemp("both")
    repository = acting.repository(folder / "repository")
    acting.git(repository, "checkout", "--quiet", "-b", "change")
    hub = standin.GitHub()
    server = standin.serve(hub)
    right = (repository / "kernels" / "softmax" / "triton.py").read_text()
    shown = []
    for push, text in enumerate((right.replace("def softmax(", "def softmax_("), right, "nonsense(\n")):
        acting.git(repository, "checkout", "--quiet", "change")
        (repository / KERNEL).write_text(text)
        shown.append(_push(repository, hub, folder / f"push-{push}"))
    yield shown
    server.shutdown()
    server.server_close()


def _push(repository: Path, hub: Any, scratch: Path) -> dict[str, Any]:
    scratch.mkdir()
    head = acting.commit(repository, "push")
    event = acting.pull_request(repository)
    first = acting.play(repository, event, scratch / "w1", KERNELCI_SEEDS="1")
    hub.open_pull(head, [(KERNEL, "added")], branch="change")
    finished = hub.start_run(head, branch="change")
    archive = first.archive("kernelci-report-1").read_bytes()
    hub.upload(finished["workflow_run"]["id"], "kernelci-report-1", archive)
    acting.git(repository, "checkout", "--quiet", "main")
    second = acting.play(repository, finished, scratch / "w2", "report.yml", STANDIN_API=hub.url)
    assert 0 == second.code, second.log[-8000:]
    checks = [check for check in hub.checks if check["head_sha"] == head]
    states = [status["state"] for status in hub.statuses if status["sha"] == head]
    comments = [dict(comment) for comment in hub.comments if comment["login"] == hub.login]
    return {"comments": comments, "conclusions": [check["conclusion"] for check in checks], "states": states}


def test_each_push_gets_a_check_and_a_status(posted: list[dict[str, Any]]) -> None:
    assert [["failure"], ["success"], ["failure"]] == [push["conclusions"] for push in posted]
    assert ["failure", "success", "failure"] == [push["states"][-1] for push in posted]


def test_a_better_verdict_updates_the_comment(posted: list[dict[str, Any]]) -> None:
    first, second = posted[0]["comments"], posted[1]["comments"]
    assert [comment["id"] for comment in first] == [comment["id"] for comment in second]
    assert (True, True) == ("## ❌" in first[0]["body"], "## ✅" in second[0]["body"])


def test_a_worse_verdict_makes_a_new_comment(posted: list[dict[str, Any]]) -> None:
    assert 2 == len(posted[2]["comments"])
    assert "## ❌" in posted[2]["comments"][1]["body"]
