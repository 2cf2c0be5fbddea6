"""A candidate that is a process of its own from the start, for tools that must start the process they look into.

compute-sanitizer and profilers inject themselves into a process that they launch, so they can't follow a zygote's
forks. Here each candidate makes its imports itself, in a fresh sandbox, optionally behind a tool's command line, and
answers the same messages. Slower by those imports, so only for rungs that need it.
"""

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import IO

from kernelci.errors import RunnerBroken
from kernelci.workbench import namespaces, sandbox
from kernelci.workbench.process import (
    CACHE,
    END_TIMEOUT_S,
    START_TIMEOUT_S,
    Candidate,
    EnvironmentFor,
    command,
    sandboxed,
    variables,
)
from kernelci.workbench.protocol import (
    Channel,
    ChannelClosed,
    DeadlinePassed,
    Exited,
    FromCandidate,
    Ready,
    Refused,
)

REPORT = "/report"  # where a tool finds the file that it writes to, inside the sandbox
REPORT_BYTES = 16 * 2**20
POLL_S = 0.5
Wrap = Callable[[str], Sequence[str]]


class SingleCandidate(Candidate):
    """A candidate that may end by itself once it is not needed any more, so that the tool around it can conclude."""

    patience_s = 20.0

    def close(self) -> None:
        """Let the process end, or kill it if that takes too long; drop its log."""
        self._channel.close()
        with contextlib.suppress(FutureTimeout):
            self._ended.result(self.patience_s)
        super().close()


class Single:
    """A forker (kernelci.workbench.session) whose candidates are processes of their own.

    They see these `devices`' nodes. `wrap` gives the tool's part of the command line, from the path that it reports to:
    a file, or with `folder` an empty folder for several. `shown` are folders that it needs to see. The kernel shares a
    sandbox with the tool, so what the tool reports is evidence, not proof.
    """

    def __init__(
        self,
        backends: tuple[str, ...],
        environment: EnvironmentFor,
        hidden: Iterable[Path] = (),
        *,
        devices: Sequence[str] = (),
        wrap: Wrap = lambda report: (),
        shown: Iterable[Path] = (),
        folder: bool = False,
    ) -> None:
        self._many = folder
        self._backends = backends
        self._environment = environment
        self._hidden = tuple(hidden)
        self._devices = tuple(devices)
        self._wrap = wrap
        self._shown = tuple(shown)
        self._folder = Path(tempfile.mkdtemp(prefix="kernelci-single-"))
        self._folder.chmod(0o755)  # the sandbox's user must reach the report
        self._processes: list[_Process] = []

    def fork(self, arena_fd: int | None = None, memory_bytes: int = 0) -> SingleCandidate:
        """A fresh process that has made its imports. Raises RunnerBroken if it does not come up."""
        report = self._folder / f"report{len(self._processes)}"
        (report.mkdir if self._many else report.touch)()
        report.chmod(0o777 if self._many else 0o666)
        jail = None
        if sandboxed():
            writable = {REPORT: report}
            jail = sandbox.Jail(self._devices, self._hidden, shown=self._shown, writable=writable, alone=True)
        inner = [
            *self._wrap(REPORT if jail else str(report)),
            *command("single", -1 if arena_fd is None else arena_fd, self._backends),
        ]
        process = _Process(jail.command(inner) if jail else inner, self._variables(), report, jail, arena_fd)
        self._processes.append(process)
        process.watch(memory_bytes)
        return process.candidate()

    def _variables(self) -> Mapping[str, str]:
        private = Path(sandbox.PRIVATE)
        if not sandboxed():
            private = self._folder / f"private{len(self._processes)}"
            private.mkdir()
        return variables(private, self._environment(private / CACHE))

    def reports(self) -> str:
        """What the tool wrote, of all processes so far: untrusted text, at most REPORT_BYTES of each."""
        return "\n".join(process.text() for process in self._processes)

    def file(self, name: str) -> bytes:
        """A file that the tool left in the last process's folder, its first REPORT_BYTES: untrusted; empty if none."""
        return read_plain(self._processes[-1].report / name) if self._processes else b""

    def close(self) -> None:
        """End what still runs, and drop the reports."""
        for process in self._processes:
            process.end()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Process:
    """One started process with all that belongs to it. Its standard input is the referee's channel."""

    def __init__(
        self,
        line: Sequence[str],
        environment: Mapping[str, str],
        report: Path,
        jail: sandbox.Jail | None,
        arena_fd: int | None,
    ) -> None:
        self.report = report
        self._jail = jail
        self._ended: Future[Exited] = Future()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by Candidate.close
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                line,
                env=dict(environment),
                pass_fds=() if arena_fd is None else (arena_fd,),
                stdin=theirs.fileno(),
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
        self._channel = Channel(ours, FromCandidate | Ready)

    def candidate(self) -> SingleCandidate:
        """The process as a candidate, when it is ready. Raises RunnerBroken."""
        made = SingleCandidate(self, 0, self._channel, self._log, self._ended)
        try:
            message = self._channel.receive(START_TIMEOUT_S)
        except (ChannelClosed, DeadlinePassed, Refused) as error:
            self.end()
            said = made.log() or self.text().strip() or str(error) or "no answer"
            made.close()
            raise RunnerBroken(f"the process did not start: {said[-2000:]}") from None
        if not isinstance(message, Ready) or message.missing:
            made.close()
            raise RunnerBroken(f"the process did not start: {getattr(message, 'missing', message)}")
        return made

    def watch(self, memory_bytes: int) -> None:
        """In the background: hold the limits, and tell how the process ended."""
        threading.Thread(target=self._watch, args=(memory_bytes,), name="single", daemon=True).start()

    def _watch(self, memory_bytes: int) -> None:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(POLL_S)
                break
            too_much = memory_bytes and namespaces.memory(self._process.pid) > memory_bytes
            if too_much or written(self.report) > REPORT_BYTES:
                self.kill(0)
        self.kill(0)  # what it left behind in its group
        if self._jail is not None:
            self._jail.close()
        self._ended.set_result(Exited(0, *_ending(code, self._jail is not None)))

    def kill(self, token: int, stack: bool = False) -> None:
        """Kill the process with its group; in a sandbox everything else in there ends with it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill it and wait until it is gone."""
        self.kill(0)
        with contextlib.suppress(FutureTimeout):
            self._ended.result(END_TIMEOUT_S)

    def text(self) -> str:
        """What the tool has written."""
        return read_plain(self.report).decode("utf-8", "replace")


def written(report: Path) -> int:
    """Bytes in a report, file or folder; what vanishes while it is counted is not counted."""
    total = 0
    for path in [report, *report.iterdir()] if report.is_dir() else [report]:
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total


def read_plain(path: Path) -> bytes:
    """The beginning of a file that others could have put anything in place of: no link is followed, nothing awaited."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        return file.read(REPORT_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


def _ending(code: int, jailed: bool) -> tuple[int, int]:
    """Exit code and signal. bubblewrap tells of a signal within as 128 + number; SIGKILL is our own alone."""
    if code < 0:
        return 0, -code
    if jailed and 128 < code <= 128 + signal.NSIG and code != 128 + signal.SIGKILL:
        return 0, code - 128
    return code, 0
