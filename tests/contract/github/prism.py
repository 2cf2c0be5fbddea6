"""GitHub's own API description as a judge: Prism stands before the stand-in and refuses what the description forbids.

Both are npm packages, installed by name and version into the user's cache folder, once. Of the description only the
operations that we use are kept: all of it takes a minute to load.
"""

import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

PACKAGES = {"@stoplight/prism-cli": "5.14.2", "@octokit/openapi": "23.0.2"}
R = "/repos/{owner}/{repo}"
DOWNLOAD = re.compile(r"/repos/[^/]+/[^/]+/actions/artifacts/[0-9]+/zip")
OPERATIONS = {
    "/user": ("get",),
    "/rate_limit": ("get",),
    "/app/installations/{installation_id}/access_tokens": ("post",),
    "/orgs/{org}/actions/runners/generate-jitconfig": ("post",),
    f"{R}/actions/runners/generate-jitconfig": ("post",),
    f"{R}/pulls": ("get",),
    f"{R}/pulls/{{pull_number}}": ("get",),
    f"{R}/pulls/{{pull_number}}/files": ("get",),
    f"{R}/issues": ("get", "post"),
    f"{R}/issues/{{issue_number}}": ("patch",),
    f"{R}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{R}/issues/{{issue_number}}/events": ("get",),
    f"{R}/issues/comments/{{comment_id}}": ("patch",),
    f"{R}/issues/comments/{{comment_id}}/reactions": ("post",),
    f"{R}/commits/{{ref}}/check-runs": ("get",),
    f"{R}/check-runs": ("post",),
    f"{R}/check-runs/{{check_run_id}}": ("patch",),
    f"{R}/statuses/{{sha}}": ("post",),
    f"{R}/commits/{{ref}}/statuses": ("get",),
    f"{R}/actions/runs": ("get",),
    f"{R}/actions/runs/{{run_id}}": ("get",),
    f"{R}/actions/runs/{{run_id}}/artifacts": ("get",),
    f"{R}/actions/runs/{{run_id}}/jobs": ("get",),
    f"{R}/actions/runs/{{run_id}}/rerun": ("post",),
    f"{R}/actions/runs/{{run_id}}/rerun-failed-jobs": ("post",),
    f"{R}/actions/workflows/{{workflow_id}}/dispatches": ("post",),
    f"{R}/collaborators/{{username}}/permission": ("get",),
    f"{R}/contents/{{path}}": ("get",),
}


def installed() -> Path:
    """The folder with both packages. Raises FileNotFoundError without npm, CalledProcessError where it fails."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise FileNotFoundError("npm and node are needed")
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "kernelci-tests"
    folder = base / "-".join(("prism", *PACKAGES.values()))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker installs, the others wait
        _install(npm, folder)
    return folder


def _install(npm: str, folder: Path) -> None:
    if not (folder / "ready").exists():
        names = [f"{name}@{version}" for name, version in PACKAGES.items()]
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", *names]
        subprocess.run(command, cwd=folder, check=True, timeout=600, capture_output=True)
        (folder / "ready").touch()


def description(folder: Path) -> Path:
    """The description of our operations, made once."""
    made = folder / f"used-{zlib.crc32(Path(__file__).read_bytes()):08x}.json"
    if not made.exists():
        whole = folder / "node_modules/@octokit/openapi/generated/api.github.com.json"
        partial = folder / f"{made.name}.{os.getpid()}"
        partial.write_text(json.dumps(reduced(json.loads(whole.read_text(encoding="utf-8")))), encoding="utf-8")
        partial.replace(made)
    return made


def reduced(whole: dict[str, Any]) -> dict[str, Any]:
    """Only our operations, and what they refer to, less what makes honest clients fail."""
    paths = {}
    for path, methods in OPERATIONS.items():
        paths[path] = {key: value for key, value in whole["paths"][path].items() if key in (*methods, "parameters")}
    made = {"openapi": whole["openapi"], "info": whole["info"], "paths": paths, "components": {}}
    made["servers"] = [{"url": "http://127.0.0.1"}]
    _keep(paths, whole, made["components"])
    _adapt(made)
    return made


def _keep(part: Any, whole: dict[str, Any], kept: dict[str, Any]) -> None:
    if isinstance(part, list):
        for each in part:
            _keep(each, whole, kept)
        return
    if not isinstance(part, dict):
        return
    for key, each in part.items():
        if key == "$ref" and isinstance(each, str):
            kind, name = each.split("/")[2:]
            if name not in kept.setdefault(kind, {}):
                kept[kind][name] = whole["components"][kind][name]
                _keep(kept[kind][name], whole, kept)
        else:
            _keep(each, whole, kept)


def _adapt(part: Any) -> None:
    """Drop examples and Link headers; let answers have the media type that GitHub's own clients ask for."""
    if isinstance(part, list):
        for each in part:
            _adapt(each)
        return
    if not isinstance(part, dict):
        return
    for key in ("example", "examples"):
        part.pop(key, None)
    if isinstance(headers := part.get("headers"), dict):
        headers.pop("Link", None)
    if isinstance(content := part.get("content"), dict) and "application/json" in content:
        content.setdefault("application/vnd.github+json", content["application/json"])
    for each in part.values():
        _adapt(each)


def serve(upstream: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start the proxy; the process and its address, once it answers."""
    folder = installed()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "node", str(folder / "node_modules/@stoplight/prism-cli/dist/index.js"), "proxy", str(description(folder)),
        upstream, "--errors", "--port", str(port), "--verboseLevel", "error",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"http://127.0.0.1:{port}"
        time.sleep(0.1)
    process.kill()
    raise RuntimeError(f"prism did not start: {process.communicate()[0].decode()[-2000:]}")


def front(prism: str, upstream: str) -> tuple[ThreadingHTTPServer, str]:
    """Where clients go: downloads straight to the stand-in, since Prism follows redirects and takes bytes for text."""

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1

        def _forward(self) -> None:
            to = upstream if DOWNLOAD.fullmatch(self.path) else prism
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            head = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            answer = requests.request(
                self.command, to + self.path, data=body or None, headers=head, allow_redirects=False, timeout=30
            )
            self.send_response(answer.status_code)
            for name in ("Content-Type", "Location", "Retry-After", "sl-violations"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = do_PATCH = _forward  # noqa: N815

        def log_message(self, format: str, *arguments: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"
