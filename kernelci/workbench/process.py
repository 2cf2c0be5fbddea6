"""The referee's handles on its untrusted processes: a zygote, and the candidates forked from it.

Deadlines are held here. A candidate is killed with its whole group, and its end (exit code or signal) comes from the
zygote, never from the candidate itself.
"""

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import IO, Any, Protocol

from kernelci.errors import RunnerBroken
from kernelci.workbench import sandbox, ward
from kernelci.workbench.protocol import (
    Channel,
    ChannelClosed,
    DeadlinePassed,
    Exited,
    Fork,
    FromCandidate,
    FromZygote,
    Kill,
    Message,
    Ready,
    Refused,
)

EnvironmentFor = Callable[[Path], Mapping[str, str]]
CACHE = "cache"  # within the private folder: where the DSLs keep what they compile
START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 10.0
LOG_BYTES = 8000
# What a candidate may know of the environment that kernelci was started in.
ALLOWED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "NVIDIA_VISIBLE_DEVICES",
)
# One thread per library: a candidate is forked, and threads do not survive a fork. The NVML check keeps
# torch.cuda.is_available() from creating a CUDA context in the zygote.
QUIET = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Ended(Exception):
    """The candidate's process ended instead of answering."""

    def __init__(self, code: int, signal: int) -> None:
        super().__init__(f"signal {signal}" if signal else f"exit code {code}")
        self.code = code
        self.signal = signal


class Owner(Protocol):
    """What started a candidate's process and can end it."""

    def kill(self, token: int, stack: bool = False) -> None:
        """Kill the process with everything it started."""


class Candidate:
    """A process that runs one kernel. Its channel and log are the referee's only links to it."""

    patience_s = 1.0  # how long it may take to end after its channel closed

    def __init__(self, owner: Owner, token: int, channel: Channel, log: IO[bytes], ended: "Future[Exited]") -> None:
        self._owner = owner
        self._token = token
        self._channel = channel
        self._log = log
        self._ended = ended

    @property
    def ended(self) -> bool:
        """Whether the process is known to have ended."""
        return self._ended.done()

    def ask(self, message: Message, timeout_s: float, awake_s: float = 0.0) -> Any:
        """Send a message and wait for the answer, the first `awake_s` without sleep. Raises DeadlinePassed, Refused or
        Ended; the process is then gone."""
        try:
            self._channel.send(message)
            return self._channel.receive(timeout_s, awake_s)
        except ChannelClosed:
            raise self._end() from None
        except (DeadlinePassed, Refused) as error:
            self.kill(stack=isinstance(error, DeadlinePassed))
            raise

    def _end(self) -> Ended:
        """How the process ended after its channel closed; one that lives on without its channel is killed."""
        for attempt in range(2):
            with contextlib.suppress(FutureTimeout):
                exited = self._ended.result(END_TIMEOUT_S if attempt else self.patience_s)
                return Ended(exited.code, exited.signal)
            self._owner.kill(self._token)
        raise RunnerBroken("the zygote no longer answers", hint="see `kernelci doctor`")

    def kill(self, stack: bool = False) -> None:
        """Kill the process and everything in its group; waits until it is gone. `stack`: it logs where it is first."""
        self._channel.close()
        if not self._ended.done():
            self._owner.kill(self._token, stack)
            with contextlib.suppress(FutureTimeout):
                self._ended.result(END_TIMEOUT_S)

    def log(self) -> str:
        """The last lines that the process wrote to stdout and stderr: untrusted text."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_BYTES))
        return self._log.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End the process and drop its log."""
        self.kill()
        self._log.close()


class Zygote:
    """A started zygote for one kind of work: "compile", "interpret" or "cuda"."""

    def __init__(
        self,
        kind: str,
        backends: tuple[str, ...],
        environment: EnvironmentFor,
        hidden: Iterable[Path] = (),
        devices: Sequence[str] = (),
    ) -> None:
        """`environment` gives the DSL's variables for a private folder; `hidden` folders are not to be seen inside,
        and of the host's device nodes only these `devices`."""
        self.kind = kind
        self._jail = sandbox.Jail(devices, hidden) if sandboxed() else None
        self._folder = None if self._jail else tempfile.TemporaryDirectory(prefix="kernelci-")
        private = Path(self._folder.name if self._folder else sandbox.PRIVATE)
        own = variables(private, environment(private / CACHE))
        if sandbox.level().restricted:
            own |= {"KERNELCI_RULES": _rules(private, hidden, devices)}
        ours, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._channel = Channel(ours, FromZygote)
        self._lock = threading.Lock()
        self._tokens = itertools.count(1)
        self._ends: dict[int, Future[Exited]] = {}
        self.ready: Future[dict[str, str]] = Future()
        started: Future[subprocess.Popen[bytes]] = Future()
        with theirs:
            inner = command(kind, theirs.fileno(), backends)
            outer = self._jail.command(inner) if self._jail else inner
            arguments = (started, outer, own, theirs.fileno())
            threading.Thread(target=self._live, args=arguments, name=f"zygote-{kind}", daemon=True).start()
            self._process = started.result()

    def _live(
        self, started: "Future[subprocess.Popen[bytes]]", inner: list[str], own: dict[str, str], control_fd: int
    ) -> None:
        """Start the process and hear it out, in one thread: the kernel ends a process whose parent's thread ends, and
        whoever asked for this one may be a thread of a moment."""
        try:
            process = subprocess.Popen(
                inner,
                env=own,
                pass_fds=(control_fd,),
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                start_new_session=True,
            )
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(process)
        self._listen()

    def _listen(self) -> None:
        try:
            while True:
                message = self._channel.receive()
                if isinstance(message, Ready):
                    self.ready.set_result(message.missing)
                elif isinstance(message, Exited):
                    self._ends.pop(message.token).set_result(message)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        broken = RunnerBroken(f"the {self.kind} process ended: {self._tail() or error}")
        if not self.ready.done():
            self.ready.set_exception(broken)
        for future in self._ends.values():
            future.set_exception(broken)

    def _tail(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(0)
            return self._errors.read()[-2000:].decode("utf-8", "replace").strip()
        return ""

    def wait_ready(self) -> dict[str, str]:
        """Backends that could not be imported, with the reason. Raises RunnerBroken if the process did not come up."""
        try:
            return self.ready.result(START_TIMEOUT_S)
        except FutureTimeout:
            raise RunnerBroken(f"the {self.kind} process did not start within {START_TIMEOUT_S:.0f} s") from None

    def fork(self, arena_fd: int | None = None, memory_bytes: int = 0) -> Candidate:
        """A fresh process that may take this much memory (0: any). Raises RunnerBroken if the zygote is gone."""
        self.wait_ready()
        ours, theirs = socket.socketpair()
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by Candidate.close
        token = next(self._tokens)
        ended: Future[Exited] = Future()
        self._ends[token] = ended
        files = (theirs.fileno(), log.fileno(), *(() if arena_fd is None else (arena_fd,)))
        with theirs, self._lock:
            try:
                self._channel.send(Fork(token, memory_bytes), files)
            except ChannelClosed:
                raise RunnerBroken(f"the {self.kind} process ended: {self._tail()}") from None
        return Candidate(self, token, Channel(ours, FromCandidate), log, ended)

    def kill(self, token: int, stack: bool = False) -> None:
        """Kill a forked process with its group."""
        with self._lock, contextlib.suppress(ChannelClosed):
            self._channel.send(Kill(token, stack))

    def close(self) -> None:
        """End the zygote and everything forked from it."""
        self._channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        self._errors.close()
        if self._jail is not None:
            self._jail.close()
        if self._folder is not None:
            self._folder.cleanup()


def command(kind: str, control_fd: int, backends: tuple[str, ...]) -> list[str]:
    """The zygote's command line: an isolated interpreter with this interpreter's module path, and nothing else."""
    code = f"{sandbox.import_paths()}from kernelci.candidate import main; main()"
    return [sys.executable, "-I", "-c", code, kind, str(control_fd), *backends]


def sandboxed() -> bool:
    """Whether the processes that are started here are contained."""
    return sandbox.level().sandboxed


def _rules(private: Path, hidden: Iterable[Path], devices: Sequence[str]) -> str:
    """What candidates may reach whose zygote keeps their folders in `private`."""
    readable = sandbox.reachable(hidden)
    user = sandbox.lower_user(readable)
    if user >= 0:
        private.chmod(0o711)
    return ward.encoded(ward.Rules(tuple(map(str, readable)), tuple(devices), str(private), user))


def variables(private: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of an untrusted process whose own files lie in `private`."""
    allowed = {name: os.environ[name] for name in ALLOWED if name in os.environ}
    own = {"HOME": str(private), "TMPDIR": str(private), "USER": "kernelci", "KERNELCI_PRIVATE": str(private)}
    found = allowed | QUIET | own | {"KERNELCI_SANDBOXED": str(int(sandboxed()))} | dict(extra)
    if sandboxed() or sandbox.level().restricted:
        found["PATH"] = sandbox.visible(found.get("PATH", ""))
    return found
