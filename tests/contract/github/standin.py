"""A small GitHub with a memory: pull requests, runs, artifacts, comments, checks and statuses over HTTP.

Answers are the examples of GitHub's own API description (shapes.json) with our state laid over them, so that the
description can be held against them. It keeps GitHub's limits, which are in no description, and it can be told to fail.
"""

import base64
import copy
import io
import json
import re
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

SHAPES: dict[str, Any] = json.loads((Path(__file__).parent / "shapes.json").read_text(encoding="utf-8"))
REPOSITORY = "octo-org/kernels"
BOT = "github-actions[bot]"
HTML = "https://github.com"
SHA = "a1" * 20
KERNELS = [(f"kernels/{name}.py", "modified") for name in ("softmax/triton", "softmax/cuda")]
Answer = tuple[int, Any, dict[str, str]]


def zipped(members: dict[str, bytes]) -> bytes:
    """An archive with these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


@dataclass
class Fault:
    """An answer that comes instead of the right one. `after`: the request is carried out, and its answer lost."""

    method: str
    path: str
    status: int
    message: str = "Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    after: bool = False
    seconds: float = 0.0


def overlaid(shape: Any, changes: dict[str, Any]) -> Any:
    """The example with our values in it."""
    made = copy.deepcopy(shape)
    for key, value in changes.items():
        made[key] = overlaid(made[key], value) if isinstance(value, dict) and isinstance(made.get(key), dict) else value
    return made


class GitHub:
    """The state, and what each request does to it."""

    def __init__(self) -> None:
        self.url = ""
        self.login = BOT
        self.token = "right-token"
        self.pulls: dict[int, dict[str, Any]] = {}
        self.files: dict[int, list[dict[str, Any]]] = {}
        self.runs: dict[int, dict[str, Any]] = {}
        self.artifacts: dict[int, list[dict[str, Any]]] = {}
        self.jobs: dict[int, list[dict[str, Any]]] = {}
        self.archives: dict[int, bytes] = {}
        self.comments: list[dict[str, Any]] = []
        self.issues: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []
        self.statuses: list[dict[str, Any]] = []
        self.contents: dict[str, bytes] = {}
        self.permissions: dict[str, str] = {}
        self.reactions: list[tuple[int, str]] = []
        self.rerun: list[int] = []
        self.dispatched: list[dict[str, Any]] = []
        self.denied: list[tuple[str, str]] = []
        self.faults: list[Fault] = []
        self.hidden_comments = 0  # lists that don't show new comments yet
        self.requests: list[tuple[str, str, Any]] = []
        self.storage_tokens: list[str] = []
        self._next = 1000
        self._lock = threading.Lock()

    # what a test arranges

    def number(self) -> int:
        """A fresh id."""
        self._next += 1
        return self._next

    def open_pull(
        self, sha: str, files: list[tuple[str, str]], *, head: str = REPOSITORY, branch: str = "topic", number: int = 7
    ) -> int:
        """A pull request with files as (path, status)."""
        self.pulls[number] = {
            "number": number,
            "state": "open",
            "html_url": f"{HTML}/{REPOSITORY}/pull/{number}",
            "head": {"sha": sha, "ref": branch, "label": f"{head.split('/')[0]}:{branch}", "repo": {"full_name": head}},
            "base": {"sha": "b" * 40, "ref": "main", "repo": {"full_name": REPOSITORY}},
        }
        self.files[number] = [{"filename": name, "status": status} for name, status in files]
        return number

    def start_run(
        self, sha: str, *, head: str = REPOSITORY, branch: str = "topic", run: int = 0, attempt: int = 1
    ) -> dict[str, Any]:
        """A run of W1, and the workflow_run event that it sets off when it is complete."""
        run = run or self.number()
        found = {
            "id": run,
            "name": "kernels",
            "event": "pull_request",
            "path": ".github/workflows/kernels.yml",
            "status": "completed",
            "conclusion": "success",
            "head_sha": sha,
            "head_branch": branch,
            "run_attempt": attempt,
            "html_url": f"{HTML}/{REPOSITORY}/actions/runs/{run}",
            "head_repository": {"full_name": head},
            "pull_requests": [],
        }
        self.runs[run] = found
        whole = overlaid(SHAPES["run"], found)
        return {"action": "completed", "workflow_run": whole, "repository": {"full_name": REPOSITORY}}

    def upload(self, run: int, name: str, archive: bytes, **more: Any) -> int:
        """An artifact of a run."""
        number = self.number()
        found = {"id": number, "name": name, "size_in_bytes": len(archive), "expired": False, **more}
        found["workflow_run"] = {"id": run, "head_sha": self.runs[run]["head_sha"]}
        self.artifacts.setdefault(run, []).append(found)
        self.archives[number] = archive
        return number

    def say(self, body: str, login: str, pull: int = 7) -> int:
        """A comment by somebody."""
        number = self.number()
        self.comments.append({"id": number, "pull": pull, "body": body, "login": login})
        return number

    def label(self, name: str, who: str, when: str, *, event: str = "labeled", pull: int = 7) -> None:
        """A label that somebody sets on a pull request, or takes off (`unlabeled`)."""
        found = {"id": self.number(), "event": event, "created_at": when, "label": name, "actor": who, "pull": pull}
        self.events.append(found)

    def fail(self, method: str, path: str, status: int, message: str = "Server Error", **more: Any) -> None:
        """Answer the next matching requests with a failure."""
        self.faults.append(Fault(method, path, status, message, **more))

    def made(self, method: str) -> list[str]:
        """The paths of all requests of a method so far."""
        return [path for verb, path, _ in self.requests if verb == method]

    # what it answers

    def answer(self, method: str, path: str, query: dict[str, str], body: Any, head: dict[str, str]) -> Answer:
        """One request."""
        with self._lock:
            self.requests.append((method, path, body))
            fault = next((each for each in self.faults if each.method == method and re.search(each.path, path)), None)
            if fault is not None:
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                if fault.after:
                    self._right(method, path, query, body, head)
        if fault is not None:
            time.sleep(fault.seconds)
            return fault.status, {"message": fault.message, "documentation_url": HTML}, fault.headers
        with self._lock:
            return self._right(method, path, query, body, head)

    def _right(self, method: str, path: str, query: dict[str, str], body: Any, head: dict[str, str]) -> Answer:
        if head.get("authorization", "").split()[-1:] != [self.token]:
            return 401, {"message": "Bad credentials", "documentation_url": HTML}, {}
        if any(method == verb and re.search(pattern, path) for verb, pattern in self.denied):
            return 403, {"message": "Resource not accessible by integration", "documentation_url": HTML}, {}
        for verb, pattern, handler in ROUTES:
            match = re.fullmatch(pattern.replace("REPO", f"/repos/{REPOSITORY}"), path)
            if verb == method and match:
                made = handler(self, query, body, *match.groups())
                return made if isinstance(made, tuple) else (200, made, {})
        return missing()

    def user(self, login: str) -> dict[str, Any]:
        """A user as GitHub shows one within other objects."""
        kind = "Bot" if login.endswith("[bot]") else "User"
        return overlaid(SHAPES["comment"]["user"], {"login": login, "type": kind})

    def shown_pull(self, number: int, shape: str) -> Any:
        changed = {"changed_files": len(self.files[number])} if shape == "pull_full" else {}
        return overlaid(SHAPES[shape], {**self.pulls[number], **changed})

    def shown_comment(self, comment: dict[str, Any]) -> Any:
        url = f"{HTML}/{REPOSITORY}/pull/{comment['pull']}#issuecomment-{comment['id']}"
        user = self.user(comment["login"])
        return overlaid(
            SHAPES["comment"], {"id": comment["id"], "body": comment["body"], "html_url": url, "user": user}
        )


def missing() -> Answer:
    """404, as GitHub says it."""
    return 404, {"message": "Not Found", "documentation_url": HTML}, {}


def refused(message: str) -> Answer:
    """422, as GitHub says it."""
    return 422, {"message": message, "documentation_url": HTML}, {}


def page(found: list[Any], query: dict[str, str]) -> list[Any]:
    """The page that was asked for."""
    size, at = int(query.get("per_page", "30")), int(query.get("page", "1"))
    return found[(at - 1) * size : at * size]


def list_pulls(hub: GitHub, query: dict[str, str], body: Any) -> Any:
    wanted = [
        number
        for number, pull in hub.pulls.items()
        if query.get("state", "open") in ("all", pull["state"]) and query.get("head") in (None, pull["head"]["label"])
    ]
    return page([hub.shown_pull(number, "pull") for number in wanted], query)


def get_pull(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    return hub.shown_pull(int(number), "pull_full") if int(number) in hub.pulls else missing()


def list_files(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    return page([overlaid(SHAPES["file"], each) for each in hub.files[int(number)]][:3000], query)


def list_comments(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    found = [each for each in hub.comments if each["pull"] == int(number)]
    if hub.hidden_comments > 0:
        hub.hidden_comments -= 1
        found = []
    return page([hub.shown_comment(each) for each in found], query)


def create_comment(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    if len(body["body"]) > 65_536:
        return refused("Validation Failed: body is too long (maximum is 65536 characters)")
    comment = {"id": hub.number(), "pull": int(number), "body": body["body"], "login": hub.login}
    hub.comments.append(comment)
    return 201, hub.shown_comment(comment), {}


def edit_comment(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    found = next((each for each in hub.comments if each["id"] == int(number)), None)
    if found is None:
        return missing()
    if found["login"] != hub.login:
        return 403, {"message": "Resource not accessible by integration", "documentation_url": HTML}, {}
    if len(body["body"]) > 65_536:
        return refused("Validation Failed: body is too long (maximum is 65536 characters)")
    found["body"] = body["body"]
    return hub.shown_comment(found)


def who(hub: GitHub, query: dict[str, str], body: Any) -> Any:
    if hub.login == BOT:
        return 403, {"message": "Resource not accessible by integration", "documentation_url": HTML}, {}
    return overlaid(SHAPES["user"], {"login": hub.login})


def permission(hub: GitHub, query: dict[str, str], body: Any, login: str) -> Any:
    found = hub.permissions.get(login, "read")
    return overlaid(SHAPES["permission"], {"permission": found, "role_name": found, "user": {"login": login}})


def content(hub: GitHub, query: dict[str, str], body: Any, path: str) -> Any:
    if path not in hub.contents:
        return missing()
    encoded = base64.encodebytes(hub.contents[path]).decode()
    return overlaid(SHAPES["content"], {"path": path, "name": path.rpartition("/")[2], "content": encoded})


def react(hub: GitHub, query: dict[str, str], body: Any, number: str) -> Any:
    hub.reactions.append((int(number), body["content"]))
    return 201, overlaid(SHAPES["reaction"], {"content": body["content"]}), {}


ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("GET", "/user", who),
    ("GET", "REPO/pulls", list_pulls),
    ("GET", r"REPO/pulls/(\d+)", get_pull),
    ("GET", r"REPO/pulls/(\d+)/files", list_files),
    ("GET", r"REPO/issues/(\d+)/comments", list_comments),
    ("POST", r"REPO/issues/(\d+)/comments", create_comment),
    ("PATCH", r"REPO/issues/comments/(\d+)", edit_comment),
    ("POST", r"REPO/issues/comments/(\d+)/reactions", react),
    ("GET", r"REPO/collaborators/([^/]+)/permission", permission),
    ("GET", "REPO/contents/(.+)", content),
]


class _Handler(BaseHTTPRequestHandler):
    hub: GitHub
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer: two wait for each other

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        parsed = urlparse(self.path)
        if parsed.path.startswith("/storage/"):
            self.hub.storage_tokens.append(self.headers.get("Authorization", ""))
            self._send(200, self.hub.archives[int(parsed.path.rpartition("/")[2])], "application/zip", {})
            return
        query = {name: values[0] for name, values in parse_qs(parsed.query).items()}
        head = {name.lower(): value for name, value in self.headers.items()}
        status, found, headers = self.hub.answer(self.command, parsed.path, query, body, head)
        data = b"" if found is None else json.dumps(found).encode()
        self._send(status, data, "application/json; charset=utf-8", headers)

    def _send(self, status: int, data: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            if status not in (204, 302) or name != "Content-Type":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:
        """Quiet: tests look at `requests`."""


def serve(hub: GitHub) -> ThreadingHTTPServer:
    """Start the server on a free port of this machine; `hub.url` says where."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server
