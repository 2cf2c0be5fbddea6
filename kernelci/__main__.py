"""The shell around the commands: runs one, turns each foreseen error into one message and its exit code."""

import contextlib
import errno
import io
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from kernelci.errors import ConfigError, KernelciError, RunnerBroken, is_full, not_installed

EXTRAS = {
    **dict.fromkeys(("torch", "numpy", "scipy", "triton", "tilelang", "cutlass", "cuda", "pynvml"), "all"),
    **dict.fromkeys(("github", "requests", "tenacity"), "github"),
    **dict.fromkeys(("duckdb", "ruptures"), "nightly"),
    **dict.fromkeys(("mcp", "snowballstemmer"), "context"),
}
"""What a command may need beyond the light installation, and the extra that has it."""
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
CLEARING_S = 5.0
"""Longer than it takes to end a run's processes; GitHub waits 7.5 s between its signals."""


def main() -> None:
    """Run the command line and exit; the codes are those of `kernelci.errors`."""
    from kernelci.cli import cli

    # A job that is cancelled or runs out of time gets SIGTERM: what is done by then is written, as after Ctrl-C.
    interrupted = once()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupted)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a sign gets `?`, not a traceback
    try:
        code = cli(standalone_mode=False)
    except KernelciError as error:
        print(error.rendered(), file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(_interrupted())
    except Exception as error:
        sys.exit(_unforeseen(error))
    sys.exit(code if isinstance(code, int) else 0)


def once(clock: Callable[[], float] = time.monotonic) -> Callable[[int, FrameType | None], None]:
    """A handler that raises KeyboardInterrupt, and not once more while that is being cleared up after: a second Ctrl-C
    would leave processes and folders behind."""
    heard: list[float] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if not heard or clock() - heard[-1] > CLEARING_S:
            heard.append(clock())
            raise KeyboardInterrupt

    return handle


def _unforeseen(error: Exception) -> int:
    import click

    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        error.show()
        return 2
    if isinstance(error, click.Abort):
        return _interrupted()
    foreseen = _foreseen(error)
    if foreseen is not None:
        print(foreseen.rendered(), file=sys.stderr)
        return foreseen.exit_code
    import traceback

    traceback.print_exc()
    print("\nThis is a bug in kernelci: please report it with the lines above.", file=sys.stderr)
    return 70


def _foreseen(error: Exception) -> KernelciError | None:
    """What stands for an error of Python's own that has a next step."""
    if isinstance(error, OSError) and is_full(error):
        from kernelci.progress import lose_output

        with contextlib.suppress(OSError):
            lose_output()
        place = error.filename or "standard output or a temporary folder"
        return RunnerBroken(f"can't write to {place}: {error.strerror}", code="no-space")
    if isinstance(error, OSError) and error.errno in _REFUSED and error.filename:
        return ConfigError(f"{error.filename}: {error.strerror}", hint="see who may read and write there")
    if isinstance(error, ModuleNotFoundError) and (extra := EXTRAS.get((error.name or "").partition(".")[0])):
        return not_installed(error.name, extra)
    return None


def _interrupted() -> int:
    print("interrupted: the report of a run holds what was done by then", file=sys.stderr)
    return 130


if __name__ == "__main__":
    main()
