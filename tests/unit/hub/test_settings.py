"""What `audit --repository` finds in a repository's settings, asked over HTTP."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kernelci.hub import settings
from kernelci.hub.client import Client, Patience

QUICK = Patience(attempts=1, backoff_s=0, pace_s=0, timeout_s=5)
PERMISSIONS = "/repos/octo/kernels/actions/permissions/workflow"
RUNNERS = "/repos/octo/kernels/actions/runners"
SOUND: dict[str, Any] = {
    PERMISSIONS: {"default_workflow_permissions": "read", "can_approve_pull_request_reviews": False},
    RUNNERS: {"total_count": 1, "runners": [{"id": 1, "name": "gpu-1", "ephemeral": True}]},
}


@pytest.fixture
def rules() -> Iterator[Callable[[dict[str, Any]], list[str]]]:
    """The rules that are broken where GitHub answers so; a path without an answer is forbidden."""
    answers: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            data = json.dumps(found or {"message": "Resource not accessible by integration"}).encode()
            self.send_response(200 if found else 403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def examined(given: dict[str, Any]) -> list[str]:
        answers.update(given)
        client = Client("octo/kernels", "token", f"http://127.0.0.1:{server.server_address[1]}", QUICK)
        return [each.rule for each in settings.examine(client)]

    yield examined
    server.shutdown()
    server.server_close()


def test_sound_settings(rules: Callable[[dict[str, Any]], list[str]]) -> None:
    assert [] == rules(SOUND)


def test_tokens_that_write_and_approve(rules: Callable[[dict[str, Any]], list[str]]) -> None:
    loose = {"default_workflow_permissions": "write", "can_approve_pull_request_reviews": True}
    assert ["default-token-writes", "workflows-approve"] == rules({**SOUND, PERMISSIONS: loose})


def test_a_runner_that_stays(rules: Callable[[dict[str, Any]], list[str]]) -> None:
    runners = {"total_count": 2, "runners": [{"name": "a", "ephemeral": False}, {"name": "b", "ephemeral": True}]}
    assert ["persistent-runner"] == rules({**SOUND, RUNNERS: runners})


def test_what_the_token_may_not_see_is_said(rules: Callable[[dict[str, Any]], list[str]]) -> None:
    assert ["settings-unseen", "settings-unseen"] == rules({})
