"""A fresh stand-in for GitHub for each test, a client that loses no time, and a proxy that knows GitHub's rules."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelci import results
from kernelci.hub import REPORT, artifact_name
from kernelci.hub.client import Patience
from kernelci.hub.publish import Posted, publish
from kernelci.hub.slash import answer
from kernelci.model import Report
from tests.conftest import load

HERE = Path(__file__).parent
QUICK = Patience(attempts=4, backoff_s=0.01, longest_s=2.0, secondary_s=0.02, timeout_s=5, pace_s=0)


@pytest.fixture
def github(standin: ModuleType) -> Iterator[Any]:
    """A fresh GitHub that listens."""
    hub = standin.GitHub()
    server = standin.serve(hub)
    yield hub
    server.shutdown()
    server.server_close()


@pytest.fixture
def opened() -> Callable[..., None]:
    """Open a pull request that changes two kernels, or these files."""

    def pull(github: Any, standin: ModuleType, files: Any = None, **more: Any) -> None:
        github.open_pull(standin.SHA, standin.KERNELS if files is None else files, **more)

    return pull


@pytest.fixture
def ours() -> Callable[[Any], list[str]]:
    """The comments of our own account."""
    return lambda github: [each["body"] for each in github.comments if each["login"] == github.login]


@pytest.fixture
def post(github: Any, tmp_path: Path) -> Callable[..., Posted]:
    """Publish an event's run against the stand-in."""

    def run(event: Any, token: str = "right-token", **more: Any) -> Posted:
        path = tmp_path / "event.json"
        path.write_text(json.dumps(event))
        environ = {"GITHUB_EVENT_PATH": str(path), "GITHUB_TOKEN": token, "GITHUB_API_URL": more.pop("url", github.url)}
        return publish(tmp_path, environ=environ, patience=QUICK, **more)

    return run


@pytest.fixture
def run_of(github: Any, standin: ModuleType) -> Callable[..., Any]:
    """A run with a report as its artifact; the event that it sets off."""

    def make(report: Report | bytes, **more: Any) -> Any:
        event = github.start_run(standin.SHA, **more)
        data = report if isinstance(report, bytes) else results.encode(report)
        run = event["workflow_run"]
        github.upload(run["id"], artifact_name(REPORT, run["run_attempt"]), standin.zipped({"results.json": data}))
        return event

    return make


@pytest.fixture
def say(github: Any, standin: ModuleType, tmp_path: Path) -> Callable[..., str]:
    """A comment on pull request 7 by somebody, and what the answering workflow does with it."""

    def comment(
        body: str, who: str, number: int = 0, action: str = "created", pull: bool = True, url: str = "", hub: Any = None
    ) -> str:
        where = hub or github
        number = number or where.say(body, who)
        issue = {"number": 7, "user": {"login": "author"}, "pull_request": {"url": "x"} if pull else None}
        said = {"id": number, "user": {"login": who}, "body": body}
        event = {"action": action, "comment": said, "issue": issue, "repository": {"full_name": standin.REPOSITORY}}
        path = tmp_path / "comment.json"
        path.write_text(json.dumps(event))
        token = where.token
        environ = {"GITHUB_EVENT_PATH": str(path), "GITHUB_TOKEN": token, "GITHUB_API_URL": url or where.url}
        return answer(environ, patience=QUICK)

    return comment


@pytest.fixture(scope="module")
def proxied(standin: ModuleType) -> Iterator[tuple[Any, str]]:
    """A GitHub, and the address of a proxy before it that refuses what GitHub's description forbids."""
    prism = load(HERE / "prism.py", "github_prism")
    hub = standin.GitHub()
    server = standin.serve(hub)
    try:
        process, address = prism.serve(hub.url)
    except FileNotFoundError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{error}: the contract with GitHub can't be checked")
        pytest.skip(str(error))
    front, url = prism.front(address, hub.url)
    yield hub, url
    front.shutdown()
    server.shutdown()
    process.kill()
    process.wait()
