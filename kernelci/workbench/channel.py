"""The channel that carries messages: a msgspec Struct in MessagePack behind its length in four bytes."""

import array
import contextlib
import select
import socket
import struct
import time
from typing import Any

import msgspec

MAX_MESSAGE_BYTES = 256 * 2**20
_LENGTH = struct.Struct("!I")


class ChannelClosed(Exception):
    """The other side is gone."""


class DeadlinePassed(Exception):
    """Nothing came before the deadline."""


class Refused(Exception):
    """The other side sent something that the protocol does not allow."""


class Channel:
    """One end of a stream socket that carries messages of one union type."""

    def __init__(self, sock: socket.socket, receives: Any, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._socket = sock
        self._decoder = msgspec.msgpack.Decoder(receives)
        self._limit = limit

    def send(self, message: msgspec.Struct, files: tuple[int, ...] = ()) -> None:
        """Send a message; file descriptors travel with its first byte. Raises ChannelClosed."""
        data = msgspec.msgpack.encode(message)
        frame = _LENGTH.pack(len(data)) + data
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self._socket.settimeout(None)
        try:
            sent = self._socket.sendmsg([frame], rights)
            if sent < len(frame):  # nothing more is left to say to a side that has heard all and is gone
                self._socket.sendall(frame[sent:])
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self, timeout_s: float | None = None, awake_s: float = 0.0) -> Any:
        """The next message. Raises ChannelClosed, DeadlinePassed or Refused.

        `awake_s`: for so long it looks again and again and does not sleep, since waking takes up to 0.1 ms, or more.
        """
        self._look(awake_s)
        return self.receive_with_files(0, timeout_s)[0]

    def _look(self, awake_s: float) -> None:
        until = time.perf_counter() + awake_s
        with contextlib.suppress(OSError, ValueError):  # closed: who receives is told
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            while time.perf_counter() < until and not poll.poll(0):
                pass

    def receive_with_files(self, count: int, timeout_s: float | None = None) -> tuple[Any, list[int]]:
        """The next message and up to `count` file descriptors that came with it."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        header, files = self._first(deadline, count)
        (length,) = _LENGTH.unpack(header)
        if length > self._limit:
            raise Refused(f"a message of {length} bytes, and {self._limit} are allowed")
        data = self._exactly(length, deadline)
        try:
            return self._decoder.decode(data), files
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Refused(f"a message that can't be decoded: {error}") from error

    def _first(self, deadline: float | None, count: int) -> tuple[bytes, list[int]]:
        if count == 0:
            return self._exactly(_LENGTH.size, deadline), []
        self._wait(deadline)
        try:
            data, files, _, _ = socket.recv_fds(self._socket, _LENGTH.size, count)
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if not data:
            raise ChannelClosed("end of stream")
        return data + self._exactly(_LENGTH.size - len(data), deadline), list(files)

    def _exactly(self, size: int, deadline: float | None) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait(deadline)
            try:
                part = self._socket.recv(min(size - len(data), 2**20))
            except TimeoutError as error:
                raise DeadlinePassed from error
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not part:
                raise ChannelClosed("end of stream")
            data += part
        return bytes(data)

    def _wait(self, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise DeadlinePassed
        try:
            self._socket.settimeout(left)
        except OSError as error:  # closed by another thread of ours
            raise ChannelClosed(str(error)) from error

    def fileno(self) -> int:
        """The socket's descriptor, for select."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread of ours that is still receiving
        self._socket.close()
