"""The connection: starts ssh, reads what it writes, and says in our words why there is none."""

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
import threading
from types import TracebackType
from typing import IO, Self

import kernelci
from kernelci import inert
from kernelci.config import Config
from kernelci.errors import ConfigError, KernelciError, RunnerBroken
from kernelci.remote import BEAT_S, GREETING, PROTOCOL
from kernelci.remote.wire import LINE_BYTES

_HOST = re.compile(r"(?:ssh://)?[A-Za-z0-9_.\[][A-Za-z0-9_.@:%\[\]-]{0,250}/?")
_OPTIONS = ("-T", "-C", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
# Ctrl-C reaches every process of the terminal: this one is to outlive it, so that the other side can still answer.
_DEAF = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
_BEFORE = 50  # lines that a login shell may print before kernelci greets
_SAID = 40  # lines of standard error that are kept
_UNKNOWN = ("Could not resolve hostname", "Name or service not known", "nodename nor servname")
_REFUSED = ("Permission denied", "Host key verification failed", "Too many authentication failures")


def command(host: str, options: Config) -> list[str]:
    """The command that starts kernelci on a host. Raises ConfigError for what is no host, and where there is no ssh."""
    if not _HOST.fullmatch(host):
        raise ConfigError(f"--on {host[:100]!r} names no machine", hint="as after `ssh`: HOST, USER@HOST or an alias")
    program = shlex.split(options.ssh)
    if not program or shutil.which(program[0]) is None:
        name = program[0] if program else ""
        raise ConfigError(f"no program {name!r} here", hint="install OpenSSH's client, or set KERNELCI_SSH", code="ssh")
    asking = () if sys.stdin.isatty() else ("-o", "BatchMode=yes")
    return [*_DEAF, *program, *_OPTIONS, *asking, "--", host, f"exec {options.on_command} hosted"]


class Link:
    """A connection to kernelci on another machine. Its standard error is shown as it comes."""

    def __init__(self, host: str, options: Config) -> None:
        self.host = host
        self._said: list[str] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command(host, options), stdin=pipe, stdout=pipe, stderr=pipe)
        self._shown = threading.Thread(target=self._show, daemon=True)
        self._shown.start()

    def __enter__(self) -> Self:
        """A context that hangs up at its end."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Hang up; the other side removes all that it has."""
        self.hang_up()
        try:
            self._process.wait(1.0 if kind is not None else 10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._shown.join(1.0)

    @property
    def answers(self) -> IO[bytes]:
        """What the other side writes."""
        assert self._process.stdout is not None
        return self._process.stdout

    def greet(self) -> None:
        """Wait until kernelci answers there. Raises KernelciError with the reason why it does not."""
        for _ in range(_BEFORE):
            line = self.answers.readline(LINE_BYTES)
            if line.startswith(GREETING):
                self._check_version(line[len(GREETING) :].decode("utf-8", "replace").split())
                return
            if not line.endswith(b"\n"):
                break
        raise self._no_greeting()

    def _check_version(self, words: list[str]) -> None:
        if words != [str(PROTOCOL), kernelci.__version__]:
            theirs = inert.line(words[-1] if words else "", 40)
            raise ConfigError(
                f"{self.host} has kernelci {theirs}, and here is {kernelci.__version__}",
                hint="install the same version on both",
                code="remote-kernelci",
            )

    def _no_greeting(self) -> KernelciError:
        """Why: ssh itself ends with 255, a shell that finds no program with 127 or 126."""
        try:
            code = self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            code = 0
        self._shown.join(1.0)
        last = self._said[-1] if self._said else ""
        if code == 255:
            return _no_connection(self.host, "\n".join(self._said), last)
        if code in (126, 127):
            return ConfigError(
                f"no kernelci on {self.host} ({last or 'command not found'})",
                hint="install it there, or say with KERNELCI_ON_COMMAND how it is started",
                code="remote-kernelci",
            )
        older = any("No such command" in line for line in self._said)
        why = "it is an older version, which has no `hosted`" if older else last or f"exit code {code}"
        hint = "install the same version on both" if older else "look with `ssh HOST kernelci --version`"
        return ConfigError(f"kernelci on {self.host} does not answer: {why}", hint=hint, code="remote-kernelci")

    def send(self, data: bytes) -> bool:
        """Send bytes; False where the other side no longer reads."""
        assert self._process.stdin is not None
        try:
            with self._lock:
                self._process.stdin.write(data)
                self._process.stdin.flush()
        except (OSError, ValueError):  # ended, or hung up
            return False
        return True

    def keep_alive(self) -> None:
        """From now on say every few seconds that somebody waits."""

        def beat() -> None:
            while not self._over.wait(BEAT_S) and self.send(b"\n"):
                pass

        threading.Thread(target=beat, daemon=True).start()

    def hang_up(self) -> None:
        """Nobody waits any more."""
        self._over.set()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._lock:
            self._process.stdin.close()

    def end_within(self, seconds: float) -> None:
        """End the connection itself unless the other side has answered by then."""
        timer = threading.Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()

    def _show(self) -> None:
        """Progress, and ssh's own messages: another machine's text."""
        assert self._process.stderr is not None
        for raw in self._process.stderr:
            text = inert.clip(inert.clean(raw.decode("utf-8", "replace")).rstrip("\n"), 2000)
            self._said = [*self._said, text][-_SAID:]
            print(text, file=sys.stderr, flush=True)


def _no_connection(host: str, said: str, last: str) -> KernelciError:
    if any(words in said for words in _UNKNOWN):
        return ConfigError(
            f"no machine {host} is known", hint="as after `ssh`: HOST, USER@HOST or an alias", code="ssh"
        )
    if any(words in said for words in _REFUSED):
        return ConfigError(f"{host} lets nobody in: {last}", hint=f"make `ssh {host} true` work", code="ssh")
    return RunnerBroken(
        f"no connection to {host}: {last or 'ssh ended'}", hint=f"make `ssh {host} true` work", code="ssh"
    )
