"""The branch that the history lives on: commits are made from git objects, and pushed without force.

Nothing is checked out and no hook runs. Each attempt starts from what the remote has now: where another push came
first, or an earlier attempt arrived though its answer did not, the edit is worked out anew and finds what is there.
"""

import base64
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kernelci.errors import ConfigError, HubError
from kernelci.git import Entry, Repository

ATTEMPTS = 8
BACKOFF_S, LONGEST_S = 0.5, 30.0
_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "kernelci",
    "GIT_AUTHOR_EMAIL": "kernelci@users.noreply.github.com",
    "GIT_COMMITTER_NAME": "kernelci",
    "GIT_COMMITTER_EMAIL": "kernelci@users.noreply.github.com",
}

Git = Callable[..., subprocess.CompletedProcess[bytes]]


class Edit(Struct, frozen=True):
    """Files to add by their paths, and paths to remove."""

    added: dict[str, bytes] = {}
    removed: tuple[str, ...] = ()
    message: str = "history"


class Snapshot:
    """What the branch holds now."""

    def __init__(self, repository: Repository, tree: Mapping[str, Entry]) -> None:
        self._repository, self.tree = repository, tree

    def read(self, paths: list[str]) -> Iterator[bytes]:
        """The bytes of files, in their order."""
        return self._repository.contents([self.tree[path] for path in paths])


Change = Callable[[Snapshot], Edit]


class Branch:
    """A branch of the repository at `url` (a URL or a folder)."""

    def __init__(self, url: str, name: str, token: str = "", git: Git | None = None, backoff_s: float = BACKOFF_S):
        self.url, self.name, self.backoff_s = url, name, backoff_s
        self._run = git or subprocess.run
        self._environment = {**os.environ, **_ALONE, **_credentials(url, token)}

    def add(self, files: Mapping[str, bytes], message: str) -> str:
        """Add files; those that are there already stay as they are. The commit that holds them. Raises HubError."""

        def edit(now: Snapshot) -> Edit:
            return Edit({path: data for path, data in files.items() if path not in now.tree}, (), message)

        return self.change(edit)

    def change(self, change: Change) -> str:
        """Carry out an edit, worked out from what is there; the commit that holds it. Raises HubError."""
        last = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0.5, 1) * min(self.backoff_s * 2**attempt, LONGEST_S))
            try:
                return self._attempt(change)
            except _Failed as error:
                last = str(error)
        raise HubError(f"the branch {self.name} could not be pushed to: {last}", hint="nothing was lost: run it again")

    def write(self, into: Path) -> str:
        """Write all its files below an empty folder; the commit, empty where there is no such branch yet."""
        with self._fetched() as (folder, tip):
            if tip:
                repository = Repository(folder)
                repository.write(repository.tree(tip), into)
            return tip

    def _attempt(self, change: Change) -> str:
        with self._fetched() as (folder, tip):
            repository = Repository(folder)
            now = Snapshot(repository, repository.tree(tip) if tip else {})
            edit = change(now)
            if tip and not edit.added and not edit.removed:
                return tip
            commit = self._commit(folder, tip, edit)
            self._git(folder, "push", "--quiet", self.url, f"{commit}:refs/heads/{self.name}")
            return commit

    @contextmanager
    def _fetched(self) -> Iterator[tuple[Path, str]]:
        with tempfile.TemporaryDirectory(prefix="kernelci-history-") as name:
            folder = Path(name)
            self._git(folder, "init", "--quiet")
            listed = self._git(folder, "ls-remote", self.url, f"refs/heads/{self.name}").split()
            if listed:
                self._git(folder, "fetch", "--quiet", "--depth=1", self.url, f"refs/heads/{self.name}")
            yield folder, self._git(folder, "rev-parse", "FETCH_HEAD").strip() if listed else ""

    def _commit(self, folder: Path, tip: str, edit: Edit) -> str:
        """A commit on `tip`, made through an index of its own."""
        if tip:
            self._git(folder, "read-tree", tip)
        lines = [f"0 {'0' * 40}\t{path}" for path in edit.removed]
        for path, data in edit.added.items():
            lines.append(f"100644 {self._git(folder, 'hash-object', '-w', '--stdin', stdin=data).strip()}\t{path}")
        self._git(folder, "update-index", "--index-info", stdin="".join(f"{line}\n" for line in lines).encode())
        tree = self._git(folder, "write-tree").strip()
        parents = ("-p", tip) if tip else ()
        return self._git(folder, "commit-tree", *parents, "-m", edit.message, tree).strip()

    def _git(self, folder: Path, *arguments: str, stdin: bytes = b"") -> str:
        settings = ("-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "safe.directory=*")
        command = ["git", *settings, "-C", str(folder), *arguments]
        try:
            done = self._run(command, input=stdin, env=self._environment, capture_output=True, check=False, timeout=300)
        except FileNotFoundError as error:
            raise ConfigError("git is missing", hint="install git", code="git") from error
        except subprocess.TimeoutExpired as error:
            raise _Failed(f"git {arguments[0]} took longer than 300 s") from error
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise _Failed(f"git {arguments[0]}: {said[-1][:300] if said else done.returncode}")
        return done.stdout.decode(errors="replace")


class _Failed(Exception):
    """One attempt came to nothing, or nobody knows."""


def _credentials(url: str, token: str) -> dict[str, str]:
    """The token as git takes it from the environment: never in an argument, a URL or a file."""
    if not token or not url.startswith("https://"):
        return {}
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{url}.extraheader",
        "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {secret}",
    }
