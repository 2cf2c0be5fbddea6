"""The zygote: a process that has made the slow imports and forks a fresh process per kernel (the untrusted side).

It runs no kernel code, makes no tensor operation (a child would hang after a parallel one in its parent), and opens
no CUDA context, which can't be forked.
"""

import contextlib
import faulthandler
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from types import FrameType

from kernelci.workbench import namespaces, ward
from kernelci.workbench.protocol import Channel, ChannelClosed, Exited, Fork, Kill, Message, Ready, ToZygote

SANDBOXED = os.environ.get("KERNELCI_SANDBOXED") == "1"
RULES = os.environ.pop("KERNELCI_RULES", "")  # what candidates restrict themselves to where no sandbox is around them
STACK_SIGNAL = signal.SIGUSR1  # makes a candidate write its stack, also from within a native call
STACK_S = 0.2
Serve = Callable[[socket.socket, int], None]


def run(control: socket.socket, kind: str, serve: Serve, missing: dict[str, str]) -> None:
    """Fork processes as asked until the control channel closes; then kill what is left. `serve(socket, arena)`."""
    if SANDBOXED or RULES:
        namespaces.undumpable()
    channel = Channel(control, ToZygote)
    channel.send(Ready(missing))
    wake, _ = _wakeup_pipe()
    children: dict[int, int] = {}  # pid to token
    while True:
        readable, _, _ = select.select([channel.fileno(), wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
            _reap(channel, children)
        if channel.fileno() in readable:
            try:
                message, files = channel.receive_with_files(3)
            except ChannelClosed:
                _kill_all(children)
                return
            _obey(message, files, children, serve, control, kind)


def _wakeup_pipe() -> tuple[int, int]:
    """A pipe that becomes readable when a child ends."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    os.set_blocking(read, False)
    signal.signal(signal.SIGCHLD, _nothing)
    signal.set_wakeup_fd(write)
    return read, write


def _nothing(number: int, frame: FrameType | None) -> None:
    return None


def _obey(
    message: Message, files: list[int], children: dict[int, int], serve: Serve, control: socket.socket, kind: str
) -> None:
    if isinstance(message, Kill):
        for pid, token in children.items():
            if token == message.token:
                if message.stack:
                    _write_stack(pid)
                _end(pid)
    elif isinstance(message, Fork):
        pid = os.fork()
        if pid == 0:
            _become_candidate(message, files, serve, control, kind)
        children[pid] = message.token
    for file in files:
        os.close(file)


def _become_candidate(message: Fork, files: list[int], serve: Serve, control: socket.socket, kind: str) -> None:
    """In the child: its own process group, log and limits; then serve. Never returns."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        control.close()
        sock, log, *arena = files
        if SANDBOXED:
            namespaces.enter(message.memory_bytes)
        elif RULES:
            os.dup2(log, 2)  # the warden says there why it ended the candidate
            ward.enter(RULES, message.memory_bytes)
        os.dup2(log, 1)
        os.dup2(log, 2)
        faulthandler.enable(2)
        faulthandler.register(STACK_SIGNAL, 2)
        _limit(message.memory_bytes if kind != "cuda" else 0)
        serve(socket.socket(fileno=sock), arena[0] if arena else -1)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        traceback.print_exc()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _limit(memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes:
        # Address space beyond what the imports have taken. CUDA's own reservations go beyond it, so a GPU run is
        # only watched (namespaces.py).
        limit = _address_space() + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _address_space() -> int:
    """Bytes of address space that this process has mapped (proc(5), statm)."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _write_stack(pid: int) -> None:
    """Ask a process that hangs for its Python stack, which goes to its log."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, STACK_SIGNAL)
        time.sleep(STACK_S)


def _end(pid: int) -> None:
    """Kill a candidate with all it started: its warden does it, if it has one, which it can't escape."""
    if SANDBOXED or RULES:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    else:
        _kill_group(pid)


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _kill_all(children: dict[int, int]) -> None:
    for pid in list(children):
        _end(pid)


def _reap(channel: Channel, children: dict[int, int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        token = children.pop(pid, None)
        if token is None:
            continue
        _kill_group(pid)  # what it left behind in its group
        ended = os.waitstatus_to_exitcode(status)
        channel.send(Exited(token, max(ended, 0), max(-ended, 0)))
