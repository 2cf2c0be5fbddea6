"""The event that set a workflow off: what GitHub itself says about the run, as against what the run says."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from kernelci.errors import EventError
from kernelci.hub.limits import EVENT_BYTES

Sha = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}$")]
FULL_NAME = r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}/(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}"
FullName = Annotated[str, Meta(pattern=f"^{FULL_NAME}$")]
Id = Annotated[int, Meta(ge=1, le=2**53)]
T = TypeVar("T")


class Repository(Struct, frozen=True):
    """A repository by its name."""

    full_name: FullName


class Actor(Struct, frozen=True):
    """Who set something off."""

    login: str


class Run(Struct, frozen=True):
    """A run of a workflow."""

    id: Id
    run_attempt: Id
    event: str
    status: str | None
    conclusion: str | None
    head_sha: Sha
    head_branch: str | None
    html_url: str
    head_repository: Repository | None
    actor: Actor | None = None
    """Who set it off at first; somebody else may have repeated it."""
    created_at: str = ""


class RunEvent(Struct, frozen=True):
    """A `workflow_run` event."""

    action: str
    workflow_run: Run
    repository: Repository


def load(environ: Mapping[str, str] | None = None) -> Any:
    """The event file that GITHUB_EVENT_PATH names, as plain objects. Raises EventError."""
    name = (os.environ if environ is None else environ).get("GITHUB_EVENT_PATH", "")
    if not name:
        raise EventError("GITHUB_EVENT_PATH is not set", hint="this command runs in a GitHub workflow")
    try:
        with Path(name).open("rb") as file:
            data = file.read(EVENT_BYTES + 1)
        if len(data) > EVENT_BYTES:
            raise EventError(f"{name} is larger than any event")
        return msgspec.json.decode(data)
    except OSError as error:
        raise EventError(f"can't read the event: {error.strerror} ({name})") from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise EventError(f"{name} is no event: {error}") from error


def of_run(event: Any) -> RunEvent:
    """A workflow_run event of a run that a pull request set off. Raises EventError for every other one."""
    if not isinstance(event, dict) or "workflow_run" not in event:
        raise EventError("the event is no workflow_run event", hint="report.yml is to run on `workflow_run`")
    found = converted(event, RunEvent)
    if found.workflow_run.event != "pull_request":
        raise EventError(f"the run was set off by {found.workflow_run.event[:40]!r}, not by a pull request")
    return found


def converted(event: Any, kind: type[T]) -> T:
    """The part of an event that a record holds. Raises EventError."""
    try:
        return msgspec.convert(event, kind)
    except msgspec.ValidationError as error:
        raise EventError(f"the event is not as GitHub sends it: {error}") from error
