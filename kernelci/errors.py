"""What can go wrong with the tool itself, each with its exit code (design: a bad kernel is data, these are not).

Exit codes: 0 all passed · 1 a kernel failed · 2 configuration · 3 nothing to do · 4 the runner is broken · 70 a bug ·
130 interrupted.
"""

import errno
from pathlib import Path


class KernelciError(Exception):
    """One clear message, the next step, and an exit code. `code` is a name that `kernelci explain` knows."""

    exit_code = 70
    code = "bug"

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code

    def rendered(self) -> str:
        """The message as a user reads it on the terminal; without a hint the next step is that of its code."""
        from kernelci.reasons import REASONS  # read from a file: only for who needs it

        return f"error[{self.code}]: {self.message}\n  next: {self.hint or REASONS[self.code].next_step}"


class ConfigError(KernelciError):
    """The caller's files or flags are wrong: configuration, cards, names, paths."""

    exit_code = 2
    code = "configuration"


class CardError(ConfigError):
    """A kernel file has no card, two, or one that can't be read."""

    code = "card"


class ReportError(ConfigError):
    """A results.json that can't be taken: wrong version, truncated, hostile."""

    code = "report"


class NothingToDo(KernelciError):
    """No case was executed: never green."""

    exit_code = 3
    code = "nothing-to-do"


class RunnerBroken(KernelciError):
    """This machine, or kernelci's own processes, failed: not the kernel's fault."""

    exit_code = 4
    code = "runner"


class GpuSick(RunnerBroken):
    """The GPU failed its health check after a fault: nothing more can be judged here."""

    code = "gpu-sick"


class HubError(KernelciError):
    """GitHub could not be reached, or did not do what was asked after all retries."""

    exit_code = 4
    code = "github"


class TokenError(ConfigError):
    """There is no token, GitHub refuses it, or it may not do what is asked."""

    code = "token"


class EventError(ConfigError):
    """The event is of another kind, or names no pull request."""

    code = "event"


class ArtifactMissing(HubError):
    """The run left no report, or it has expired."""

    code = "artifact-missing"


class Superseded(NothingToDo):
    """The pull request is closed or has moved on, or a newer attempt speaks for it: nothing is posted."""

    code = "superseded"


def is_full(error: OSError) -> bool:
    """Whether a disk, or what a user may take of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def unwritten(path: Path, error: OSError, hint: str = "name another with --out") -> KernelciError:
    """What to raise where `path` can't be written: RunnerBroken for a full disk, else ConfigError with the hint."""
    in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
    message = f"can't write to {path}: {'a file is in the way' if in_the_way else error.strerror}"
    if is_full(error):
        return RunnerBroken(message, hint="make room, or name a place elsewhere", code="no-space")
    return ConfigError(message, hint=hint, code="output-folder")


class Stop(Exception):
    """Raised inside a rung to end it for this kernel with a reason from `kernelci.reasons`."""

    def __init__(self, reason: str, message: str, *, file: str = "", line: int = 0, log: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.file = file
        self.line = line
        self.log = log


class ReferenceFailed(Exception):
    """The reference itself is wrong or raised: BROKEN, never the kernel's fault."""


def not_installed(module: str | None, extra: str) -> ConfigError:
    """What to raise where a package of one of our extras is missing."""
    return ConfigError(f"{module} is not installed", hint=f"pip install 'kernelci[{extra}]'")
