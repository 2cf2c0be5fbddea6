"""One question and one answer over a unix socket, both a line of JSON; who asks is what the kernel says."""

import contextlib
import socket
import struct
import time
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

LARGEST_BYTES = 256 * 2**10
T = TypeVar("T")


class Peer(Struct, frozen=True):
    """The process at the other end when it connected."""

    pid: int
    uid: int


class BadMessage(Exception):
    """What arrived is no message, too long, or did not arrive in time."""


def peer(connection: socket.socket) -> Peer:
    """Who is at the other end, by SO_PEERCRED."""
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return Peer(pid, uid)


def listen(path: Path) -> socket.socket:
    """A socket that everybody may connect to: whom it answers is decided by `peer`. Replaces one that was left.

    It gets its name when it listens, so that nobody who sees it is turned away.
    """
    early = path.with_name(f"{path.name}~")
    early.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    server.bind(str(early))
    early.chmod(0o666)
    server.listen(16)
    early.replace(path)
    return server


def send(connection: socket.socket, message: Struct) -> None:
    """Send a record. Raises OSError."""
    connection.sendall(msgspec.json.encode(message) + b"\n")


def receive(connection: socket.socket, kind: type[T], timeout_s: float) -> T:
    """A record that is all there within so long. Raises BadMessage."""
    data, end = b"", time.monotonic() + timeout_s
    try:
        while not data.endswith(b"\n") and len(data) <= LARGEST_BYTES:
            connection.settimeout(max(end - time.monotonic(), 0.001))
            part = connection.recv(2**16)
            if not part:
                break
            data += part
    except OSError as error:
        raise BadMessage(f"no message: {error}") from error
    if not data.endswith(b"\n"):
        raise BadMessage("the message is cut off or too long")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadMessage(f"no message: {error}") from error


def ask(path: Path, question: Struct, kind: type[T], timeout_s: float) -> T:
    """Ask whoever listens there. Raises OSError where nobody does, BadMessage where the answer is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        with contextlib.suppress(BrokenPipeError):  # who is not served gets an answer without having been read
            send(connection, question)
        return receive(connection, kind, timeout_s)
