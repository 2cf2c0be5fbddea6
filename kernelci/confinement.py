"""A whole run in a sandbox of its own: the second referee, whose Python a change brought along.

Bubblewrap as an unprivileged user: no network, no variables of ours, the trees read-only, a private folder in memory
for all that it writes, one GPU's device nodes. Nothing leaves it but one stream of bytes, bounded, which
`kernelci.second` reads as hostile. Candidates in it get the best level that works inside, found by trying it there
before a byte of the head is run: bubblewrap where namespaces nest, else Landlock, else plain processes.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from kernelci import results
from kernelci.resources import TEMPLATES
from kernelci.second import FACTS, MAX_BYTES, SAID, Confined
from kernelci.workbench import namespaces, sandbox
from kernelci.workbench.device import Device, find
from kernelci.workbench.process import variables

LOG_BYTES = 16_000
PROCESSES = 4096
OUT = f"{sandbox.PRIVATE}/out"
END_S = 10.0
LEAST_LEFT = 0.03  # of this machine's memory
_CHUNK = 2**16
_POLL_S = 0.2
_WATCH_S = 1.0
# What the run prints goes to standard error, and its report alone to standard output. Then the head's own templates.
_UNRENDERED = 9
_SCRIPT = f"""
project=$1 python=$2 code=$3; shift 3
"$python" -I -c "$code" --root "$project" "$@" >&2
test -f {OUT}/{results.FILE_NAME} || exit 1
cat {OUT}/{results.FILE_NAME}
test -d "$project/{TEMPLATES}" || exit 0
for format in markdown html; do
    "$python" -I -c "$code" --root "$project" report {OUT} --format $format --output {OUT}/page >&2 \\
        || exit {_UNRENDERED}
done
"""
# Limits that hold for all that starts in the sandbox, the shell too: a process of the head could make that one its own.
_LIMITED = (
    "import os, resource, signal, sys; signal.signal(signal.SIGPIPE, signal.SIG_DFL); "
    f"[resource.setrlimit(kind, (most, most)) for kind, most in ((resource.RLIMIT_NPROC, {PROCESSES}), "
    "(resource.RLIMIT_CORE, 0))]; os.execvp(sys.argv[1], sys.argv[1:])"
)
_LEVEL = "import msgspec; from kernelci.workbench import sandbox; print(msgspec.json.encode(sandbox.level()).decode())"


class Bounds(Struct, frozen=True):
    """What a run in the sandbox may take."""

    seconds: float
    memory_bytes: int
    output_bytes: int = MAX_BYTES


class Stopped(Exception):
    """The run went beyond a bound; the text says which."""


def confined(project: Path, shown: Sequence[Path], arguments: Sequence[str], bounds: Bounds) -> tuple[Confined, bytes]:
    """Run a verb of kernelci on the project, all of it in the sandbox: what is known of it, and what it said.

    `arguments`: the verb, and its own. `shown`: folders that are visible inside, the project's among them.
    """
    level = sandbox.level()
    if not level.sandboxed:
        return Confined(why=f"it needs bubblewrap, and this machine has {level.text}: {level.why}"), b""
    device = find()
    inner = _level_inside(device)
    where = f"{level.text}, for the whole run; candidates in it: {inner.text}{f' ({inner.why})' if inner.why else ''}"
    code = f"{sandbox.import_paths()}from kernelci.__main__ import main; main()"
    script = ["sh", "-c", _SCRIPT, "sh", str(project), sys.executable, code]
    try:
        done = run([*script, arguments[0], "--out", OUT, *arguments[1:]], shown, bounds, device)
    except Stopped as stopped:
        return Confined(where, str(stopped)), b""
    remark = f"its {TEMPLATES} can't be rendered" if done.code == _UNRENDERED else ""
    return Confined(where, "" if done.said else "it left no report", done.log, remark), done.said


def _level_inside(device: Device) -> sandbox.Level:
    """How well candidates are contained inside, asked before anything of the head is there."""
    command = [sys.executable, "-I", "-c", f"{sandbox.import_paths()}{_LEVEL}"]
    done = run(command, (), Bounds(120.0, 2**32), device)
    try:
        return msgspec.json.decode(done.said, type=sandbox.Level)
    except msgspec.MsgspecError:
        return sandbox.Level("process", sandbox.PLAIN, f"not found out: {done.log[-200:]}")


class Done(Struct, frozen=True):
    """What a command in the sandbox wrote to standard output, the end of what it wrote to standard error, and its exit
    code: none of it is more than its word."""

    said: bytes
    log: str
    code: int


def run(inner: Sequence[str], shown: Sequence[Path], bounds: Bounds, device: Device) -> Done:
    """Run a command in the sandbox.

    Raises Stopped; all that it started is gone then.
    """
    nodes = sandbox.gpu_nodes(device.node) if device.is_gpu else []
    environment = variables(Path(sandbox.PRIVATE), _gpu(device))
    with sandbox.Jail(nodes, (), shown=shown, alone=True) as jail:
        process = subprocess.Popen(
            jail.command([sys.executable, "-I", "-c", _LIMITED, *inner]),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            said, log = _collected(process, bounds)
        finally:
            _end(process)
    return Done(said, log, process.returncode)


def _gpu(device: Device) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": sandbox.visible_gpu(device.node, device.uuid)} if device.is_gpu else {}


def _collected(process: "subprocess.Popen[bytes]", bounds: Bounds) -> tuple[bytes, str]:
    """Both streams until they end, or until something is too much."""
    assert process.stdout is not None
    assert process.stderr is not None
    said, log, until, looked = bytearray(), b"", time.monotonic() + bounds.seconds, 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(_POLL_S):
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    said += chunk
                else:
                    log = (log + chunk)[-LOG_BYTES:]
            now = time.monotonic()
            if now - looked > _WATCH_S:
                looked = now
                _check_memory(process.pid, bounds)
            if now > until:
                raise Stopped(f"it was not done within {bounds.seconds:g} s")
            if len(said) > bounds.output_bytes:
                raise Stopped(f"it wrote more than {bounds.output_bytes / 2**20:.0f} MiB")
    return bytes(said), log.decode("utf-8", "replace")


def _check_memory(pid: int, bounds: Bounds) -> None:
    """Its processes' own memory; and what the machine has left, since files in memory belong to no process."""
    if namespaces.memory(pid) > bounds.memory_bytes:
        raise Stopped(f"it took more than {bounds.memory_bytes / 2**30:.1f} GiB of memory")
    if _left_bytes() < LEAST_LEFT * _memory_bytes():
        raise Stopped("this machine's memory was used up")


def _left_bytes() -> int:
    """Memory that could still be had (proc(5): meminfo, MemAvailable)."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return _memory_bytes()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill all that lies below bubblewrap; it ends itself once its process namespace is empty."""
    for pid in namespaces.family(process.pid) if process.poll() is None else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if pid != process.pid else signal.SIGCONT)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its namespace goes with it, a little later
        process.wait()
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def most_memory() -> int:
    """Three quarters of this machine's memory, in bytes."""
    return _memory_bytes() * 3 // 4


@click.command()
@click.option("--project", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--shown", type=click.Path(path_type=Path, exists=True), multiple=True)
@click.option("--into", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--seconds", type=float, required=True)
@click.argument("arguments", nargs=-1)
def main(project: Path, shown: tuple[Path, ...], into: Path, seconds: float, arguments: tuple[str, ...]) -> None:
    """Run kernelci with ARGUMENTS confined; leaves what is known of it and what it said in the folder INTO."""
    found, said = confined(project.resolve(), shown, arguments, Bounds(seconds, most_memory()))
    (into / FACTS).write_bytes(msgspec.json.encode(found))
    (into / SAID).write_bytes(said)


if __name__ == "__main__":
    main()
