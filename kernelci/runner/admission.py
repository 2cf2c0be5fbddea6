"""The door between a job and the host: a socket at which the hooks of GitHub's runner speak for their job.

Only a process of the job is heard, and only the first that says "started" is asked for admission: at that time nothing
of the job has run. What comes later may come from the job itself.
"""

import contextlib
import os
import select
import shlex
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kernelci.runner import hook, wire
from kernelci.runner.policy import Claim
from kernelci.runner.say import say

HEARD_S = 2.0
HOOKS = {"started": "ACTIONS_RUNNER_HOOK_JOB_STARTED", "completed": "ACTIONS_RUNNER_HOOK_JOB_COMPLETED"}
_SCRIPT = """#!/bin/bash
# Made by kernelci. GitHub's runner takes only scripts for hooks.
exec {command}
"""


class Word(Struct, frozen=True, forbid_unknown_fields=True):
    """What a hook says."""

    kind: Literal["started", "completed"]
    claim: Claim


class Reply(Struct, frozen=True):
    """What the hook is told."""

    admitted: bool
    why: str = ""


class Door:
    """Listens below `folder`, and writes the hooks there."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "door"
        self._server = wire.listen(self._path)
        self._server.setblocking(False)
        self.environment = _hooks(folder / "hooks", self._path)

    def wait(self, seconds: float, ours: Callable[[int], bool], decide: Callable[[Word], Reply]) -> None:
        """Wait so long for one visitor, and answer it. `ours`: whether a process belongs to the job."""
        if not select.select([self._server], [], [], seconds)[0]:
            return
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            with connection:
                self._meet(connection, ours, decide)

    def close(self) -> None:
        """Stop to listen."""
        self._server.close()
        self._path.unlink(missing_ok=True)

    @staticmethod
    def _meet(connection: socket.socket, ours: Callable[[int], bool], decide: Callable[[Word], Reply]) -> None:
        who = wire.peer(connection)
        if not ours(who.pid):
            say(f"process {who.pid} of user {who.uid} is not of the job, and is not heard")
            return
        try:
            reply = decide(wire.receive(connection, Word, HEARD_S))
        except wire.BadMessage as error:
            reply = Reply(False, str(error))
        connection.settimeout(HEARD_S)
        wire.send(connection, reply)


def _hooks(folder: Path, door: Path) -> dict[str, str]:
    """Write the scripts that GitHub's runner calls; the variables that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    (folder / "hook.py").write_text(Path(hook.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    for kind in HOOKS:
        script = folder / f"{kind}.sh"
        command = shlex.join([python, "-I", str(folder / "hook.py"), kind, str(door)])
        script.write_text(_SCRIPT.format(command=command), encoding="utf-8")
        os.chmod(script, 0o755)
    return {variable: str(folder / f"{kind}.sh") for kind, variable in HOOKS.items()}
