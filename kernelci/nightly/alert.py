"""One issue for each change: found by a hidden line and its author, brought in step, reopened instead of doubled.

What people write above the marker stays. What a stranger writes counts for nothing, marker or not.
"""

import datetime
import re
import shlex
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kernelci import inert
from kernelci.hub.client import Client
from kernelci.hub.limits import COMMENT_CHARACTERS
from kernelci.hub.sticky import User, identity
from kernelci.nightly.changes import Change, Row, State

LABEL = "kernelci-nightly"
_MARKER = re.compile(r"^<!-- kernelci:change ([0-9a-f]{12}) -->$", re.MULTILINE)
ROWS = 60
SHORT = 16  # of a commit: longer ones are broken up where they stand in code, and can't be copied


class Issue(Struct, frozen=True):
    """An issue as GitHub gives it. A pull request is one too, and none of ours."""

    number: int
    state: str
    title: str
    html_url: str
    body: str | None = None
    user: User | None = None
    pull_request: object = None

    @property
    def id(self) -> str:
        """The change that it speaks of; empty for none."""
        found = _MARKER.findall(self.body or "")
        return found[-1] if found else ""


class Done(Struct, frozen=True):
    """What became of one change's issue."""

    change: str
    issue: int
    what: str
    """created, updated, reopened, closed or unchanged"""


def sync(client: Client, changes: Iterable[Change], login: str = "") -> tuple[Done, ...]:
    """Bring the issues in step with the changes. Raises KernelciError; doing it again does what is left."""
    who = login or identity(client)
    known = _known(client, who)
    done = (_synced(client, who, change, known.get(change.id)) for change in changes)
    return tuple(each for each in done if each is not None)


def _known(client: Client, login: str) -> dict[str, Issue]:
    """Our issues by their change; of two for one change the older one speaks."""
    found = client.pages("issues", Issue, state="all", labels=LABEL, limit=10_000)
    ours = [each for each in found if each.user and each.user.login == login and each.pull_request is None and each.id]
    return {each.id: each for each in sorted(ours, key=lambda each: -each.number)}


def _synced(client: Client, login: str, change: Change, issue: Issue | None) -> Done | None:
    if issue is None:
        # What has ended before anybody was told needs no issue.
        return _created(client, login, change) if change.state.is_open else None
    wanted = "open" if change.state.is_open else "closed"
    body = page(change, issue.body or "")
    title_ = title(change)
    # What has ended is left as it is: later nights say nothing of it.
    if issue.state == wanted == "closed" or (issue.state, issue.body, issue.title) == (wanted, body, title_):
        return Done(change.id, issue.number, "unchanged")
    reason = {"state_reason": "completed" if change.state is State.FIXED else "not_planned"}
    moved = issue.state != wanted
    more = {"state": wanted, **(reason if wanted == "closed" else {"state_reason": "reopened"})} if moved else {}
    client.patch(f"issues/{issue.number}", {"title": title_, "body": body, **more}, Issue)
    return Done(change.id, issue.number, {"open": "reopened", "closed": "closed"}[wanted] if moved else "updated")


def _created(client: Client, login: str, change: Change) -> Done:
    body = {"title": title(change), "body": page(change), "labels": [LABEL]}
    made = client.post("issues", body, Issue, lambda: _known(client, login).get(change.id))
    return Done(change.id, made.number, "created")


def title(change: Change) -> str:
    """`softmax/triton is 3.1 % slower since 2026-11-28`."""
    worst = max((row.delta or 0.0 for row in change.rows), default=0.0)
    return f"{inert.line(change.kernel, 100)} is {100 * worst:.1f} % slower since {change.since}"


def page(change: Change, before: str = "") -> str:
    """The issue's body: what people wrote above the marker, and below it what is known now."""
    above = _MARKER.split(before)[0].rstrip() if _MARKER.search(before) else _opening(change)
    below = "\n".join((f"<!-- kernelci:change {change.id} -->", "", *_status(change)))
    room = max(COMMENT_CHARACTERS - len(below) - 10, 0)
    return f"{above[:room]}\n\n{below}\n"


def _opening(change: Change) -> str:
    return (
        f"A kernel takes longer than it did: {inert.code(change.kernel)}. Each row below was confirmed by measuring "
        "the last good commit against the slower one in pairs on the same GPU.\n\n"
        "_What is written above the table stays; the table is kept up to date every night._"
    )


def _status(change: Change) -> list[str]:
    lines = [f"**{change.state.value}**{_words(change)}", "", *_culprit(change), ""]
    lines += [
        "| case | GPU | since | slower by | tonight | last trusted night |",
        "| :-- | :-- | :-- | --: | :-- | :-- |",
    ]
    lines += [_line(row) for row in change.rows[:ROWS]]
    if len(change.rows) > ROWS:
        lines.append(f"\nand {len(change.rows) - ROWS} more")
    return [*lines, "", _next(change)]


def _words(change: Change) -> str:
    until = f" until {change.until}" if change.until else ""
    said = f": {inert.prose(inert.line(change.said, 300))}" if change.said else ""
    return f"{until}{said}"


def _culprit(change: Change) -> list[str]:
    if len(change.commits) == 1:
        return [f"Commit: {change.commits[0]}"]
    if len(change.commits) == 2:
        return [f"It came after {change.commits[0]}, up to {change.commits[1]}."]
    return []


def _line(row: Row) -> str:
    slower = "" if row.delta is None else f"{row.delta:+.1%}"
    if row.low is not None and row.high is not None:
        slower += f" ({row.low:+.1%} to {row.high:+.1%})"
    now = {True: "back", False: "slow", None: "not comparable: measured with something else since"}[row.back]
    return f"| {inert.code(row.case)} | {inert.code(row.gpu)} | {row.since} | {slower} | {now} | {row.trusted or ''} |"


def _next(change: Change) -> str:
    if not change.state.is_open:
        return "Nothing is left to do."
    row = change.rows[0]
    names = [shlex.quote(inert.line(name, 100)) for name in (change.kernel, row.case)]
    command = f"kernelci bisect {names[0]} --case {names[1]} --good {row.good[:SHORT]} --bad {row.bad[:SHORT]}"
    return f"Next: {inert.code(command, 400)} on such a GPU, or `kernelci history mark` with a reason."


def text(done: Sequence[Done], today: datetime.date) -> str:
    """What was done, a line each."""
    lines = [f"#{each.issue} {each.what} ({each.change})" for each in done]
    return "".join(f"{line}\n" for line in lines or [f"{today}: no change to tell of"])
