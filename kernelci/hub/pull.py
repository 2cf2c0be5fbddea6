"""The pull request of a run, resolved from the event: a fork's run names none, and what a run says is no evidence."""

import os
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from kernelci.errors import EventError, Superseded
from kernelci.hub import event as events
from kernelci.hub.client import Client
from kernelci.hub.event import Repository, Run, RunEvent, Sha
from kernelci.hub.limits import LISTED_FILES


class Side(Struct, frozen=True):
    """Head or base of a pull request. `repo` is None where a fork was deleted."""

    sha: Sha
    ref: str
    repo: Repository | None


class Pull(Struct, frozen=True):
    """A pull request."""

    number: int
    state: Literal["open", "closed"]
    head: Side
    base: Side
    html_url: str

    @property
    def is_fork(self) -> bool:
        """Whether the head lies in another repository."""
        return self.head.repo is None or self.base.repo is None or self.head.repo != self.base.repo


class File(Struct, frozen=True):
    """A file that a pull request changes."""

    filename: str
    status: str
    previous_filename: str = ""


class _Counted(Struct, frozen=True):
    changed_files: int


class Files(Struct, frozen=True):
    """The files of a pull request; `complete` is False where GitHub lists fewer than there are."""

    files: tuple[File, ...]
    complete: bool

    @property
    def paths(self) -> frozenset[str]:
        """Every path that the change touches, a renamed file's old one too."""
        old = {file.previous_filename for file in self.files if file.previous_filename}
        return frozenset({file.filename for file in self.files} | old)


def resolve(client: Client, event: RunEvent) -> Pull:
    """The one open pull request whose head is still what the run ran on. Raises Superseded or EventError."""
    run = event.workflow_run
    if run.head_repository is None or not run.head_branch:
        raise Superseded("the branch, or the fork, that the run ran on was deleted")
    owner = run.head_repository.full_name.partition("/")[0]
    found = client.pages("pulls", Pull, state="open", head=f"{owner}:{run.head_branch}", limit=300)
    ours = [pull for pull in found if pull.head.repo == run.head_repository and pull.state == "open"]
    into = [pull for pull in ours if pull.base.repo == event.repository]
    current = [pull for pull in into if pull.head.sha == run.head_sha]
    if len(current) > 1:
        numbers = ", ".join(str(pull.number) for pull in current)
        raise EventError(f"pull requests {numbers} have one head: which is meant?", code="pull-request")
    if not current:
        raise Superseded(_where(into, run))
    _check_attempt(client, run)
    return current[0]


def of_event(number: int) -> Pull | None:
    """The pull request of the event that set this workflow off, if it is that one: that needs no permission."""
    found = events.load() if os.environ.get("GITHUB_EVENT_PATH") else None
    if not isinstance(found, dict) or "pull_request" not in found or found.get("number") != number:
        return None
    return events.converted(found["pull_request"], Pull)


def runs_of(client: Client, pull: Pull, limit: int) -> Iterator[Run]:
    """The runs that a pull request's branch has set off, the newest first; at most `limit` are looked at."""
    every = client.pages(
        "actions/runs", Run, key="workflow_runs", branch=pull.head.ref, event="pull_request", limit=limit
    )
    return (run for run in every if run.head_repository == pull.head.repo and run.head_branch == pull.head.ref)


def _where(pulls: list[Pull], run: Run) -> str:
    if not pulls:
        return f"no open pull request from {run.head_branch}: it was closed or merged"
    return f"pull request {pulls[0].number} has moved on from {run.head_sha[:10]} to {pulls[0].head.sha[:10]}"


def _check_attempt(client: Client, run: Run) -> None:
    newest = client.get(f"actions/runs/{run.id}", Run)
    if newest.run_attempt > run.run_attempt:
        raise Superseded(f"run {run.id} is at attempt {newest.run_attempt}, and this is {run.run_attempt}")


def is_current(client: Client, pull: Pull) -> bool:
    """Whether the pull request is still open at the same head: asked again just before posting."""
    now = client.get(f"pulls/{pull.number}", Pull)
    return now.state == "open" and now.head.sha == pull.head.sha


def files(client: Client, pull: Pull) -> Files:
    """What the pull request changes, as GitHub says."""
    listed = tuple(client.pages(f"pulls/{pull.number}/files", File, limit=LISTED_FILES))
    counted = client.get(f"pulls/{pull.number}", _Counted).changed_files
    return Files(listed, counted == len(listed))
