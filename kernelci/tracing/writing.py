"""A trace buffer written by the host, for tracers that record elsewhere; `records` has the layout and the reader."""

import struct
from collections.abc import Sequence

from kernelci.tracing.records import END, ENDED, HEADER_BYTES, MAGIC, VERSION, Event, Layout, Recorded

_TRACK = struct.Struct("<4Q6IQ")
_RECORD = struct.Struct("<QII")
_HEADER = struct.Struct("<5I")
CLAIMED_AT = 16  # where the header counts the tracks that were claimed


def track(recorded: Recorded, number: int, layout: Layout) -> bytes:
    """The bytes of track `number`, its stride long: the first events that fit, and how many there were."""
    head = _TRACK.pack(
        *(recorded.begin, recorded.end, recorded.timer_begin, recorded.timer_end),
        *(recorded.launch, recorded.sm, recorded.block, recorded.warp, recorded.wanted, ENDED, 0),
    )
    events = b"".join(_record(event, number) for event in recorded.events[: layout.events])
    return (head + events).ljust(layout.stride, b"\0")


def tracks(found: Sequence[Recorded], first: int, layout: Layout) -> bytes:
    """Consecutive tracks from number `first` on, as many as the layout has room for."""
    room = max(0, layout.tracks - first)
    return b"".join(track(each, first + at, layout) for at, each in enumerate(found[:room]))


def offset(number: int, layout: Layout) -> int:
    """Where a track begins in the buffer."""
    return HEADER_BYTES + number * layout.stride


def _record(event: Event, number: int) -> bytes:
    return _RECORD.pack(event.clock, event.region | (END if event.is_end else 0), number)


def opened(header: bytes) -> tuple[Layout, int]:
    """The layout of a buffer that lies here, and how many of its tracks are claimed. Raises ValueError for another."""
    magic, version, count, events, claimed = _HEADER.unpack_from(header)
    if (magic, version) != (MAGIC, VERSION):
        raise ValueError("there is no trace buffer")
    return Layout(count, events), claimed
