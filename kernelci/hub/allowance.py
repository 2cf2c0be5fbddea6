"""Who allowed the change's own judge to be heard: an owner by a label, and for the commit alone that it was set on.

W1 has it from the event of the label, which carries commit and sender, and asks what the sender may do in a job that
runs nothing of the change. W2 takes no run's word for it: it asks GitHub for the label, and takes the commit from the
run that the label set off, which belongs to the same person and began right after.
"""

import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from kernelci.config import Config
from kernelci.errors import EventError
from kernelci.hub import event
from kernelci.hub.event import Actor, Id, Repository, Run, Sha
from kernelci.model import Report
from kernelci.second import LABEL

if TYPE_CHECKING:  # the job that runs kernels needs no client of GitHub
    from kernelci.hub.client import Client

PROMPT_S = 600.0
SKEW_S = 5.0
EVENTS = 3_000  # of a pull request that are looked at
OWNERS = ("admin", "maintain")
LEFT_OUT = "rows of a second referee were left out"


class NotAllowed(Exception):
    """Nobody has allowed it for this commit; the text says why."""


class Label(Struct, frozen=True):
    """A label by its name."""

    name: str


class Commit(Struct, frozen=True):
    """A side of a pull request."""

    sha: Sha


class Labelled(Struct, frozen=True):
    """A pull request as an event shows it."""

    number: Id
    head: Commit
    base: Commit


class LabelEvent(Struct, frozen=True):
    """A `pull_request` event of a label that was set."""

    action: str
    label: Label
    sender: Actor
    pull_request: Labelled
    repository: Repository


class Happened(Struct, frozen=True):
    """One entry of a pull request's history."""

    event: str
    created_at: str
    actor: Actor | None = None
    label: Label | None = None


class Role(Struct, frozen=True):
    """What somebody may do in a repository."""

    permission: str
    role_name: str = ""


def of_event(raw: Any, head: str) -> LabelEvent:
    """The event of our label, set on this head. Raises EventError for every other one."""
    if not isinstance(raw, dict) or raw.get("action") != "labeled" or "pull_request" not in raw:
        raise EventError("the event is no label on a pull request", hint=f"the label {LABEL} is what allows it")
    found = event.converted(raw, LabelEvent)
    if found.label.name != LABEL:
        raise EventError(f"the label is {found.label.name[:60]!r}, not {LABEL}")
    if found.pull_request.head.sha != head:
        raise EventError(f"the label was set on {found.pull_request.head.sha[:10]}, and {head[:10]} is to be judged")
    return found


def check_owner(client: "Client", options: Config, login: str) -> None:
    """Raises NotAllowed for somebody whose label allows nothing: by the base's configuration, else by GitHub."""
    if options.owners:
        if login.lower() not in map(str.lower, options.owners):
            raise NotAllowed(f"{login} set the label {LABEL}, and is none of the owners that the configuration names")
        return
    role = client.find(f"collaborators/{login}/permission", Role)
    if role is None:
        raise NotAllowed(f"{login} set the label {LABEL}, and GitHub does not tell what they may do here")
    if role.permission != "admin" and role.role_name not in OWNERS:
        raise NotAllowed(f"{login} set the label {LABEL}, and does not maintain this repository")


def verified(client: "Client", pull: int, run: Run, options: Config) -> str:
    """Who allowed this run to hear the change's own judge. Raises NotAllowed."""
    history = sorted(client.pages(f"issues/{pull}/events", Happened, limit=EVENTS), key=lambda each: each.created_at)
    ours = [each for each in history if each.label is not None and each.label.name == LABEL]
    if not ours or ours[-1].event != "labeled" or ours[-1].actor is None:
        raise NotAllowed(f"the label {LABEL} is not set")
    login = ours[-1].actor.login
    check_owner(client, options, login)
    _check_run(history, ours[-1], run)
    return login


def kept(client: "Client", pull: int, run: Run, options: Config, report: Report) -> Report:
    """The report, with a second referee's rows only where GitHub says that an owner allowed them for this commit."""
    if report.second is None:
        return report
    try:
        by = verified(client, pull, run, options)
    except NotAllowed as why:
        return msgspec.structs.replace(report, second=None, notes=(*report.notes, f"{LEFT_OUT}: {why}"))
    return msgspec.structs.replace(report, second=msgspec.structs.replace(report.second, by=by))


def _check_run(history: Iterable[Happened], label: Happened, run: Run) -> None:
    """The run is the one that this label set off: of the same person, right after, and no other label between."""
    if run.actor is None or label.actor is None or run.actor.login != label.actor.login:
        raise NotAllowed(f"the label {LABEL} was set by another person than the one who set off this run")
    began, until = _seconds(run.created_at), _seconds(label.created_at)
    before = [
        each
        for each in history
        if each.event == "labeled" and each.actor == label.actor and _seconds(each.created_at) <= began + SKEW_S
    ]
    if not before or before[-1] != label or not -SKEW_S <= began - until <= PROMPT_S:
        raise NotAllowed(f"the label {LABEL} was set for another commit or run")


def _seconds(text: str) -> float:
    """A time as GitHub writes it, in seconds since 1970. Raises NotAllowed."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        raise NotAllowed("GitHub does not tell when") from error
