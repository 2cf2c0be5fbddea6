"""The process that holds the token: it hands out configurations of runners that take one job, and nothing else.

It runs as a user of its own and answers one user, whom the kernel names. Whoever takes over the host's loop can get
runners for the one place in the broker's configuration, and no token.
"""

import re
import socket
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from kernelci.errors import HubError, KernelciError, RunnerBroken
from kernelci.runner import wire
from kernelci.runner.say import say

if TYPE_CHECKING:  # the host asks, and never loads what talks to GitHub
    from kernelci.runner.registrar import Registrar

PREFIX = "kernelci-"
REQUIRED = frozenset({"self-hosted", "ephemeral"})
PER_HOUR = 120
MESSAGE_S = 5.0
ANSWER_S = 80.0
_NAME = re.compile(rf"{PREFIX}[A-Za-z0-9][A-Za-z0-9._-]{{0,54}}")
_LABEL = re.compile(r"[A-Za-z0-9][\w.:+-]{0,99}", re.ASCII)


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """A runner that is wanted."""

    name: Annotated[str, Meta(max_length=64)]
    labels: Annotated[tuple[str, ...], Meta(max_length=64)]


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """Its configuration and GitHub's time in seconds since the epoch; or why there is none."""

    config: str = ""
    github_time_s: float | None = None
    error: str = ""
    kind: Literal["", "away", "refused"] = ""
    """away: GitHub does not answer, or something is at its limits; refused: asking again changes nothing."""


class Broker:
    """Answers the user with the number `serves`, one question after the other."""

    def __init__(self, registrar: "Registrar", path: Path, serves: int, per_hour: int = PER_HOUR) -> None:
        self._registrar, self._serves = registrar, serves
        self._times: deque[float] = deque(maxlen=per_hour)
        self._server = wire.listen(path)
        self._path = path

    def serve(self, times: int | None = None) -> None:
        """Answer for ever, or so many times."""
        while times is None or times > 0:
            connection, _ = self._server.accept()
            with connection:
                self._meet(connection)
            times = None if times is None else times - 1

    def close(self) -> None:
        """Stop to listen."""
        self._server.close()
        self._path.unlink(missing_ok=True)

    def _meet(self, connection: socket.socket) -> None:
        who = wire.peer(connection)
        try:
            if who.uid != self._serves:
                say(f"refused: process {who.pid} of user {who.uid} asked for a runner")
                connection.settimeout(MESSAGE_S)
                wire.send(connection, Answer(error=f"user {who.uid} is not served here", kind="refused"))
                return
            question = wire.receive(connection, Question, MESSAGE_S)
            wire.send(connection, self._answer(question))
        except (wire.BadMessage, OSError) as error:
            say(f"process {who.pid} of user {who.uid}: {error}")

    def _answer(self, question: Question) -> Answer:
        if wrong := unfit(question):
            say(f"refused: {wrong}")
            return Answer(error=wrong, kind="refused")
        if wrong := self._too_many():
            return Answer(error=wrong, kind="away")
        try:
            config, now = self._registrar.jitconfig(question.name, question.labels)
        except KernelciError as error:
            say(f"no runner {question.name}: {error.message}")
            kind: Literal["away", "refused"] = "away" if isinstance(error, HubError) else "refused"
            return Answer(error=" ".join(filter(None, (error.message, error.hint)))[:500], kind=kind)
        say(f"registered {question.name}")
        return Answer(config, now)

    def _too_many(self) -> str:
        now = time.monotonic()
        if len(self._times) == self._times.maxlen and now - self._times[0] < 3600:
            return f"more than {self._times.maxlen} runners within an hour"
        self._times.append(now)
        return ""


def unfit(question: Question) -> str:
    """Why no such runner is registered; empty if it may be."""
    if not _NAME.fullmatch(question.name):
        return f"{question.name!a} is no name of a runner: {PREFIX}…"
    if not all(_LABEL.fullmatch(label) for label in question.labels):
        return "a label has signs that labels don't have"
    missing = REQUIRED - set(question.labels)
    return f"the labels lack {', '.join(sorted(missing))}" if missing else ""


class GitHubAway(Exception):
    """There is no runner now; GitHub may answer later."""


def ask(path: Path, question: Question, timeout_s: float = ANSWER_S) -> Answer:
    """A configuration from the broker. Raises GitHubAway, or RunnerBroken where it refuses or is not there."""
    try:
        answer = wire.ask(path, question, Answer, timeout_s)
    except (OSError, wire.BadMessage) as error:
        raise RunnerBroken(f"{path}: {error}", hint="systemctl status kernelci-broker", code="broker") from error
    if answer.kind == "away":
        raise GitHubAway(answer.error)
    if answer.kind == "refused" or not answer.config:
        raise RunnerBroken(f"the broker gives no runner: {answer.error}", code="broker")
    return answer
