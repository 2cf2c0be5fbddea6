"""`/kernelci rerun|profile|accept` in a comment on a pull request, by people with write permission; each is answered.

Runs on `issue_comment` beside a write token, so nothing of the pull request is checked out or read but its comments.
"""

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from kernelci import inert
from kernelci.errors import EventError, TokenError
from kernelci.hub import checks, event, replies, sticky
from kernelci.hub.client import Client, Patience, connect
from kernelci.hub.event import Id, Repository, Run
from kernelci.hub.feedback import newest_check
from kernelci.hub.pull import Pull

PROFILE_WORKFLOW = "profile.yml"
USAGE = (
    "Known: `/kernelci rerun`, `/kernelci profile [changed|all|NAME]`, `/kernelci accept COMMIT REASON`. One command a "
    "comment, on its first line."
)
_LINE = re.compile(r"/kernelci(?:[ \t]+([^\r\n]{0,1000}))?[ \t]*")
_ROWS = re.compile(r"[A-Za-z0-9_*][A-Za-z0-9_.*-]{0,99}(?:/[A-Za-z0-9_*][A-Za-z0-9_.*-]{0,99})?")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


class Author(Struct, frozen=True):
    """Who wrote a comment."""

    login: str


class Said(Struct, frozen=True):
    """The comment of an event."""

    id: Id
    user: Author | None
    body: str | None = None


class Issue(Struct, frozen=True):
    """Where it was said; a pull request where it has `pull_request`."""

    number: Id
    user: Author | None = None
    pull_request: dict[str, object] | None = None


class CommentEvent(Struct, frozen=True):
    """An `issue_comment` event."""

    action: str
    comment: Said
    issue: Issue
    repository: Repository


class Permission(Struct, frozen=True):
    """What somebody may do in the repository."""

    permission: str
    role_name: str = ""


class Command(Struct, frozen=True):
    """A command and the rest of its line."""

    verb: Literal["rerun", "profile", "accept"]
    words: tuple[str, ...] = ()


class Refused(Exception):
    """The command is not carried out; the text says why."""


def parse(body: str) -> Command | None:
    """The command on the first line; None where the comment is none. Raises Refused for a command that is wrong."""
    match = _LINE.fullmatch(body.split("\n", 1)[0].rstrip("\r"))
    if match is None:
        return None
    verb, *words = (match.group(1) or "").split() or [""]
    if verb == "rerun" and not words:
        return Command("rerun")
    if verb == "profile" and len(words) <= 1 and all(_ROWS.fullmatch(word) for word in words):
        return Command("profile", tuple(words) or ("changed",))
    if verb == "accept" and len(words) >= 2 and _COMMIT.fullmatch(words[0]):
        return Command("accept", tuple(words))
    raise Refused(f"That is no command that I know. {USAGE}")


def answer(environ: Mapping[str, str], login: str = "", patience: Patience | None = None) -> str:
    """Carry out the command of the event, if it holds one, and answer it once. Raises KernelciError."""
    found = _loaded(environ)
    said = found.comment
    if found.action != "created" or said.user is None or not (said.body or "").startswith("/kernelci"):
        return "no command"
    client = connect(found.repository.full_name, environ, patience)
    login = login or sticky.identity(client)
    marker = f"<!-- kernelci:answer {said.id} -->"
    if said.user.login == login or replies.posted(client, found.issue.number, login, marker):
        return "answered before"
    try:
        command = parse(said.body or "")
        if command is None:
            return "no command"
        text = _carried_out(client, found, said.user.login, command, login)
    except Refused as why:
        text = str(why)
    replies.post(client, found.issue.number, login, f"{marker}\n{text}\n")
    return text


def _loaded(environ: Mapping[str, str]) -> CommentEvent:
    raw = event.load(environ)
    if not isinstance(raw, dict) or "comment" not in raw or "issue" not in raw:
        raise EventError("the event is no issue_comment event")
    found = event.converted(raw, CommentEvent)
    if found.issue.pull_request is None:
        raise EventError("the comment is on an issue, not on a pull request")
    return found


def _carried_out(client: Client, found: CommentEvent, who: str, command: Command, login: str) -> str:
    role = client.find(f"collaborators/{who}/permission", Permission)
    if role is None or role.permission not in ("admin", "write"):
        raise Refused(f"Only people with write permission can ask for `{command.verb}`.")
    pull = client.get(f"pulls/{found.issue.number}", Pull)
    if pull.state != "open":
        raise Refused("The pull request is closed.")
    match command.verb:
        case "rerun":
            return _rerun(client, pull)
        case "profile":
            return _profile(client, pull, command.words[0])
        case "accept":
            return _accept(client, found, pull, who, role, command.words, login)


def _rerun(client: Client, pull: Pull) -> str:
    check, run = _judged(client, pull)
    if run.status != "completed":
        raise Refused(f"Run {run.id} of this head is still under way.")
    client.post(f"actions/runs/{run.id}/rerun", {}, dict)
    return f"Run {run.id} is repeated, as attempt {run.run_attempt + 1} (the check was {check.conclusion or 'open'})."


def _judged(client: Client, pull: Pull) -> tuple[checks.Check, Run]:
    check = newest_check(client, pull.head.sha)
    if check is None or check.external_id is None:
        raise Refused("The newest head has no check of mine yet.")
    return check, client.get(f"actions/runs/{check.external_id.partition('.')[0]}", Run)


def _profile(client: Client, pull: Pull, rows: str) -> str:
    """Only a dispatched workflow starts from here: what a workflow's own token labels or pushes starts none."""
    inputs = {"pull": str(pull.number), "sha": pull.head.sha, "profile": rows}
    try:
        client.post(
            f"actions/workflows/{PROFILE_WORKFLOW}/dispatches", {"ref": pull.base.ref, "inputs": inputs}, type(None)
        )
    except TokenError as error:
        raise Refused(f"This repository has no `{PROFILE_WORKFLOW}` that I may start.") from error
    return (
        f"A profile of {inert.code(rows)} at {inert.code(pull.head.sha[:10])} has been asked for; it is answered here."
    )


def _accept(
    client: Client, found: CommentEvent, pull: Pull, who: str, role: Permission, words: tuple[str, ...], login: str
) -> str:
    """Somebody else than the author vouches, for this one commit, for what only people can judge."""
    commit, reason = words[0], " ".join(words[1:])
    if not pull.head.sha.startswith(commit):
        raise Refused(f"The head is {pull.head.sha[:10]} by now: look at that one first.")
    if role.permission != "admin" and role.role_name not in ("admin", "maintain"):
        raise Refused("Only people who maintain this repository can accept.")
    if found.issue.user is not None and found.issue.user.login == who:
        raise Refused("Whoever opened the pull request can't accept it.")
    check, run = _judged(client, pull)
    _check_acceptable(client, pull, check, run, login)
    title = f"{checks.ACCEPTED} {who} at {commit}: {reason}"
    output = {"title": inert.line(title, 250), "summary": f"{inert.prose(title)}\n"}
    body = {"status": "completed", "conclusion": "success", "output": output}
    client.patch(f"check-runs/{check.id}", body, checks.Check)
    checks.status(client, pull.head.sha, "success", title, run.html_url)
    return f"Accepted for {inert.code(commit)}, and for no later commit: {inert.prose(reason)}"


def _check_acceptable(client: Client, pull: Pull, check: checks.Check, run: Run, login: str) -> None:
    """Nobody can accept a kernel that is wrong: only a change of the judge, an UNKNOWN time, or one that is slower."""
    comments = sticky.own(client, pull.number, login)
    block = comments[-1].block if comments else None
    if block is None or (block.sha, block.run, block.attempt) != (pull.head.sha, run.id, run.run_attempt):
        raise Refused("There is no report on this head yet.")
    slower = bool(block.stopped) and all(each.reason == "slower" for each in block.stopped)
    if check.conclusion == "success" or not (block.outcome == "PASSED" or slower):
        raise Refused(
            f"The report says {block.outcome}, and the check {check.conclusion}: nothing here can be accepted."
        )
