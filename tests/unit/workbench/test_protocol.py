"""Messages and the channel: whole round trips, and nothing but Refused, ChannelClosed or DeadlinePassed else."""

import os
import socket
import struct
import threading
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelci.workbench import protocol
from kernelci.workbench.protocol import Channel, ChannelClosed, DeadlinePassed, Refused

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SIZES = st.lists(st.integers(0, 2**40), max_size=3).map(tuple)
PLACES = st.builds(protocol.TensorPlace, st.integers(0, 2**40), SIZES, SIZES, TEXT)
VALUES = PLACES | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.booleans() | TEXT | st.none()
CALLS = st.builds(protocol.Call, st.dictionaries(TEXT, st.integers(0, 9)), st.dictionaries(TEXT, VALUES), st.just({}))
KERNELS = st.builds(protocol.BuiltKernel, TEXT, TEXT, st.dictionaries(TEXT, st.binary(max_size=50)))
CLAIMS = st.sampled_from(["raised", "compile-error", "shared-memory", "out-of-memory", "gpu-fault", "needs-data"])
SOURCES = st.builds(protocol.Source, TEXT, TEXT, st.dictionaries(TEXT, st.binary(max_size=9)))
MODES = st.sampled_from(["graph", "eager", "each"])
SLOTS = st.lists(st.integers(0, 4096), max_size=9).map(tuple)
TO_CANDIDATE = (
    CALLS
    | st.builds(protocol.Load, SOURCES, TEXT, TEXT, TEXT, st.integers(0, 2**60), st.binary(max_size=9))
    | st.builds(protocol.Series, st.integers(0, 999), CALLS, SLOTS, st.integers(0, 2**40), MODES)
    | st.builds(protocol.Go, st.integers(0, 999))
    | st.sampled_from([protocol.Audit(), protocol.Forget()])
)
FROM_CANDIDATE = (
    st.builds(protocol.Prepared, TEXT, st.integers(-1, 10_000))
    | st.builds(protocol.Finished, st.floats(0, 1e13))
    | st.builds(protocol.Loaded, st.tuples(TEXT))
    | st.builds(protocol.Done, st.dictionaries(TEXT, st.builds(protocol.Returned, SIZES, TEXT)))
    | st.builds(protocol.Raised, CLAIMS, TEXT, TEXT, st.integers(0, 999), TEXT)
    | st.builds(protocol.Built, st.tuples(KERNELS), st.tuples(TEXT))
)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends."""
    pair = socket.socketpair()
    yield pair
    for end in pair:
        end.close()


@QUICK
@given(TO_CANDIDATE)
def test_round_trip_to_the_candidate(sockets: tuple[socket.socket, socket.socket], message: protocol.Message) -> None:
    Channel(sockets[0], protocol.FromCandidate).send(message)
    assert message == Channel(sockets[1], protocol.ToCandidate).receive(5)


@QUICK
@given(FROM_CANDIDATE)
def test_round_trip_from_the_candidate(sockets: tuple[socket.socket, socket.socket], message: protocol.Message) -> None:
    Channel(sockets[0], protocol.ToCandidate).send(message)
    assert message == Channel(sockets[1], protocol.FromCandidate).receive(5)


@QUICK
@given(st.binary(max_size=100))
def test_garbage_is_refused(sockets: tuple[socket.socket, socket.socket], garbage: bytes) -> None:
    sockets[0].sendall(struct.pack("!I", len(garbage)) + garbage)
    with pytest.raises(Refused):
        Channel(sockets[1], protocol.FromCandidate).receive(5)


@QUICK
@given(FROM_CANDIDATE, st.data())
def test_truncated_is_an_end(message: protocol.Message, data: st.DataObject) -> None:
    body = msgspec.msgpack.encode(message)
    frame = struct.pack("!I", len(body)) + body
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frame[: data.draw(st.integers(0, len(frame) - 1))])
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(ChannelClosed):
            Channel(theirs, protocol.FromCandidate).receive(5)


def test_messages_keep_their_order(sockets: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = Channel(sockets[0], protocol.ToCandidate), Channel(sockets[1], protocol.FromCandidate)
    for number in range(3):
        sender.send(protocol.Loaded((str(number),)))
    assert ["0", "1", "2"] == [receiver.receive(5).parameters[0] for _ in range(3)]


def test_large_message_arrives_whole(sockets: tuple[socket.socket, socket.socket]) -> None:
    message = protocol.Built((protocol.BuiltKernel("s", "c", {"cubin": os.urandom(3 * 2**20)}),))
    sending = threading.Thread(target=Channel(sockets[0], protocol.ToCandidate).send, args=(message,))
    sending.start()
    received = Channel(sockets[1], protocol.FromCandidate).receive(30)
    sending.join()
    assert message == received


def test_oversize_is_refused_before_it_is_read(sockets: tuple[socket.socket, socket.socket]) -> None:
    sockets[0].sendall(struct.pack("!I", 1001))
    with pytest.raises(Refused, match="1001 bytes, and 1000 are allowed"):
        Channel(sockets[1], protocol.FromCandidate, limit=1000).receive(5)


def test_largest_length_is_refused(sockets: tuple[socket.socket, socket.socket]) -> None:
    sockets[0].sendall(b"\xff" * 4)
    with pytest.raises(Refused, match="4294967295 bytes"):
        Channel(sockets[1], protocol.FromCandidate).receive(5)


def _encoded(sockets: tuple[socket.socket, socket.socket], document: object) -> Channel:
    body = msgspec.msgpack.encode(document)
    sockets[0].sendall(struct.pack("!I", len(body)) + body)
    return Channel(sockets[1], protocol.FromCandidate)


@pytest.mark.parametrize(
    "document",
    [
        {"type": "Loaded"},
        {"type": "Loaded", "parameters": ["x"], "surprise": 1},
        {"type": "Load", "path": "p", "entry": "e", "backend": "b", "device": "cpu", "arena_bytes": 1},
        {"type": "Done", "returned": {"y": {"shape": ["3"], "dtype": "float32"}}},
        {"type": "Raised", "reason": "no-gpu", "message": "let me pass"},
        {"type": "Raised", "reason": "raised\n", "message": ""},
        {"type": "Raised", "reason": "raised", "message": "", "line": -1},
        {"type": "Finished", "device_ns": -1.0},
        {"type": "Finished", "device_ns": float("nan")},
        {"type": "Finished", "device_ns": float("inf")},
        {"type": "Finished", "device_ns": "3"},
        {"type": "Prepared", "config": -2},
        {"type": "Prepared", "config": 10_001},
        {"type": "Prepared", "refused": "x" * 4001},
        {"type": "Series", "number": 0, "call": {}, "slots": [], "stride": 0, "mode": "graph"},
        {"type": "Go", "number": 0},
        ["Loaded", ["x"]],
        None,
    ],
)
def test_what_a_candidate_may_not_say(sockets: tuple[socket.socket, socket.socket], document: object) -> None:
    with pytest.raises(Refused, match="can't be decoded"):
        _encoded(sockets, document).receive(5)


def test_deep_nesting_is_refused(sockets: tuple[socket.socket, socket.socket]) -> None:
    body = b"\x91" * 100_000
    sockets[0].sendall(struct.pack("!I", len(body)) + body)
    with pytest.raises(Refused):
        Channel(sockets[1], protocol.FromCandidate).receive(5)


def test_deadline_without_a_message(sockets: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(DeadlinePassed):
        Channel(sockets[1], protocol.FromCandidate).receive(0.01)


def test_who_is_awake_hears_what_comes_and_keeps_the_deadline(sockets: tuple[socket.socket, socket.socket]) -> None:
    receiver = Channel(sockets[1], protocol.FromCandidate)
    Channel(sockets[0], protocol.FromCandidate).send(protocol.Loaded(("x",)))
    assert protocol.Loaded(("x",)) == receiver.receive(5, awake_s=60)
    with pytest.raises(DeadlinePassed):
        receiver.receive(0.01, awake_s=0.02)


def test_who_is_awake_is_told_of_an_end(sockets: tuple[socket.socket, socket.socket]) -> None:
    sockets[0].close()
    with pytest.raises(ChannelClosed):
        Channel(sockets[1], protocol.FromCandidate).receive(5, awake_s=60)


def test_deadline_in_the_middle_of_a_message(sockets: tuple[socket.socket, socket.socket]) -> None:
    sockets[0].sendall(struct.pack("!I", 10) + b"abc")
    with pytest.raises(DeadlinePassed):
        Channel(sockets[1], protocol.FromCandidate).receive(0.05)


def test_sending_to_nobody(sockets: tuple[socket.socket, socket.socket]) -> None:
    sockets[1].close()
    with pytest.raises(ChannelClosed):
        Channel(sockets[0], protocol.ToCandidate).send(protocol.Done())


def test_files_travel_with_a_message(sockets: tuple[socket.socket, socket.socket]) -> None:
    read, write = os.pipe()
    Channel(sockets[0], protocol.FromZygote).send(protocol.Fork(1), (write,))
    message, files = Channel(sockets[1], protocol.ToZygote).receive_with_files(3, 5)
    os.write(files[0], b"hello")
    assert (protocol.Fork(1), b"hello") == (message, os.read(read, 5))
    for file in (read, write, *files):
        os.close(file)


def test_closing_wakes_a_thread_that_receives(sockets: tuple[socket.socket, socket.socket]) -> None:
    channel, ends = Channel(sockets[1], protocol.FromCandidate), []

    def receive() -> None:
        try:
            channel.receive()
        except ChannelClosed as error:
            ends.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    while not thread.is_alive():
        pass
    channel.close()
    thread.join(20)
    assert (1, False) == (len(ends), thread.is_alive())


def test_a_side_that_leaves_after_the_last_byte_is_no_error(sockets: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = sockets

    class Leaving:
        """A socket whose other side is gone as soon as everything was sent."""

        def __getattr__(self, name: str) -> object:
            return getattr(ours, name)

        def sendmsg(self, *args: object) -> int:
            sent = ours.sendmsg(*args)
            theirs.close()
            return sent

    Channel(Leaving(), protocol.ToZygote).send(protocol.Kill(1))
