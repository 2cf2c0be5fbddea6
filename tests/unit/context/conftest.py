"""What these tests share: a project with sources, local git repositories, and a web server on this machine."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kernelci.context import opening, sync
from kernelci.context.search import Index

Project = Callable[..., Path]
Page = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A function that writes a project whose kernelci.toml holds the given source tables."""

    def make(*tables: str) -> Path:
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        text = "\n".join(f"[[context]]\n{table}\n" for table in tables)
        (root / "kernelci.toml").write_text(text, encoding="utf-8")
        return root

    return make


class Repository:
    """A git repository that tests commit to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null"}
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=self.path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, **files: str | bytes) -> str:
        """Write files (two underscores for a slash, one before the suffix for a dot), commit, and give the hash."""
        for name, content in files.items():
            stem, _, suffix = name.replace("__", "/").rpartition("_")
            file = self.path / f"{stem}.{suffix}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "change")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository."""
    return Repository(tmp_path / "upstream")


class Web:
    """Pages by path, each a function of the request; and every request that came."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[tuple[str, dict[str, str], int]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.sent = 0
                page = outer.pages.get(self.path)
                if page is None:
                    self.send_error(404)
                else:
                    page(self)
                if not self.sent:
                    self.note(0)

            def note(self, code: int) -> None:
                self.sent = code
                outer.requests.append((self.path, dict(self.headers), code))

            def send_response(self, code: int, message: str | None = None) -> None:
                self.note(code)  # before the other side can have read it
                super().send_response(code, message)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def serve(self, path: str, body: str | bytes, kind: str = "text/html; charset=utf-8", etag: str = "") -> None:
        """A page that knows its ETag and ranges."""
        data = body if isinstance(body, bytes) else body.encode()

        def page(request: BaseHTTPRequestHandler) -> None:
            if etag and request.headers.get("If-None-Match") == etag:
                answer(request, 304, b"", kind, etag)
                return
            start = request.headers.get("Range", "")
            if start and request.headers.get("If-Range") == etag:
                answer(request, 206, data[int(start.removeprefix("bytes=").rstrip("-")) :], kind, etag)
                return
            answer(request, 200, data, kind, etag)

        self.pages[path] = page


def answer(
    request: BaseHTTPRequestHandler, code: int, body: bytes, kind: str, etag: str, length: int | None = None
) -> None:
    """One response; a `length` beyond the body's makes it break off."""
    request.send_response(code)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body) if length is None else length))
    if etag:
        request.send_header("ETag", etag)
    if length is not None:
        request.close_connection = True
    request.end_headers()
    request.wfile.write(body)


@pytest.fixture
def web() -> Iterator[Web]:
    """A web server."""
    made = Web()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def outcomes(root: Path, *names: str) -> dict[str, str]:
    """The outcome of each source in a sync."""
    return {done.name: done.outcome for done in sync.sync(root, names)}


def said(root: Path) -> str:
    """What a sync said of its only source."""
    (done,) = sync.sync(root)
    return f"{done.outcome}: {done.said}"


def paths(root: Path) -> list[str]:
    """All paths that can be found."""
    index = Index(root)
    found = sorted(path for _, database in index.shards for path, _ in opening.texts(database))
    index.close()
    return found


def text(root: Path, place: str) -> str:
    """The text of the page at a place."""
    index = Index(root)
    page = opening.page(index, place)
    index.close()
    return page.text
