"""The far side of `run --on`: takes the project into its own folder, climbs, sends the report back, leaves nothing."""

import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import kernelci
from kernelci import config
from kernelci.errors import KernelciError, RunnerBroken
from kernelci.hub import limits, unpack
from kernelci.remote import GREETING, PROTOCOL, SILENCE_S, packing, wire
from kernelci.remote.wire import Answer, Request
from kernelci.workbench import namespaces

# Options that say where things lie or how this machine is used, not what is judged.
OWN = frozenset({"out", "cache", "jobs", "lanes", "ssh", "on_command"})
END_S = 5.0


def serve(source: IO[bytes], target: IO[bytes]) -> int:
    """Answer one request; the exit code is this program's, the run's stands in the answer."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(OSError):
        namespaces.adopt_orphans()  # whatever a run leaves behind comes to us
    target.write(GREETING + f"{PROTOCOL} {kernelci.__version__}\n".encode())
    target.flush()
    line = source.readline(wire.LINE_BYTES)
    if not line.endswith(b"\n"):
        return 0  # another version, or nobody, is at the other end
    with _folder() as folder, tempfile.TemporaryFile(dir=folder) as archive:
        answer = _answered(line, source, folder, archive)
        target.write(wire.encoded(answer))
        archive.seek(0)
        shutil.copyfileobj(archive, target)
        target.flush()
    return 0


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder that goes, with all that was started meanwhile. Candidates of another user pass through it."""
    folder = Path(tempfile.mkdtemp(prefix="kernelci-on-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        end_children()
        shutil.rmtree(folder, ignore_errors=True)


def _answered(line: bytes, source: IO[bytes], folder: Path, archive: IO[bytes]) -> Answer:
    try:
        request = wire.decoded(line, Request)
        _receive(request, source, folder)
        code = _climbed(request, source, folder)
        files, left_out = packing.fitting(packing.report_files(folder / "out"), limits.DUMPS)
        packing.pack(archive, [("", folder / "out", files)])
        return Answer(code=code, size=archive.seek(0, os.SEEK_END), left_out=left_out)
    except KernelciError as error:
        return Answer(code=error.exit_code, message=error.message[:1000], hint=error.hint[:1000], error=error.code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return Answer(code=RunnerBroken.exit_code, message=full(folder.parent), hint=_HINT, error="no-space")


_HINT = "make room there, or set TMPDIR there to a larger disk"


def full(folder: Path) -> str:
    """That a disk is full, in words."""
    return f"no space left in {folder} there"


def _receive(request: Request, source: IO[bytes], folder: Path) -> None:
    """The project, below `project` (and `base`). Raises RunnerBroken where it does not fit or does not come whole."""
    if shutil.disk_usage(folder).free < 2 * request.size + limits.MIB:
        raise RunnerBroken(full(folder.parent), hint=_HINT, code="no-space")
    arrived = folder / "arrived.zip"
    with arrived.open("wb") as file:
        if wire.copy(source, file, request.size) < request.size:
            raise RunnerBroken("the connection ended before the whole project was there", code="remote")
    for name in ("out", "temporary"):
        (folder / name).mkdir(mode=0o711)
    unpack.everything(arrived, folder / "sent", wire.PROJECT)
    arrived.unlink()


def _climbed(request: Request, source: IO[bytes], folder: Path) -> int:
    """The run's exit code. It is ended when nobody waits for it any more."""
    root = folder / "sent" / "project"
    known = {f"KERNELCI_{name.upper()}" for name in config.names() if name not in OWN}
    environ = {**os.environ, **{name: value for name, value in request.environ.items() if name in known}}
    base = [f"--base-folder={folder / 'sent' / 'base'}"] if request.has_base else []
    command = [sys.executable, "-P", "-m", "kernelci", "--root", str(root), "run", "--no-table"]
    process = subprocess.Popen(
        [*command, f"--out={folder / 'out'}", *base, *request.options.arguments()],
        cwd=root,
        env={**environ, "TMPDIR": str(folder / "temporary")},
        stdin=subprocess.DEVNULL,
        stdout=2,
        start_new_session=True,
    )
    gone = threading.Event()
    threading.Thread(target=_watch, args=(source.fileno(), gone), daemon=True).start()
    try:
        while process.poll() is None and not gone.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
    finally:
        code = _ended(process)
    return code


def _watch(handle: int, gone: threading.Event) -> None:
    """Say when the other side has ended, or has said nothing for long."""
    while select.select([handle], [], [], SILENCE_S)[0] and os.read(handle, 2**16):
        pass
    gone.set()


def _ended(process: subprocess.Popen[bytes]) -> int:
    """End the run if it is not over, as Ctrl-C would; its exit code."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
    code = process.wait()
    return code if code >= 0 else 128 - code


def end_children(patience_s: float = 10.0) -> None:
    """Kill whatever is left of what this process started, orphans too, and wait for it."""
    until = time.monotonic() + patience_s
    while (found := _children()) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)


def _children() -> list[int]:
    found = []
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended, or a kernel that does not tell
            found += [int(pid) for pid in (task / "children").read_text().split()]
    return found
