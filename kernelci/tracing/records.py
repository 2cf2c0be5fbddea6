"""The device buffer of a trace: its layout, and a strict, bounded reading of it. Little-endian, offsets in bytes.

    header, 64:  0 magic "KCTR" · 4 version · 8 tracks · 12 events per track · 16 tracks that a host has
                 written, or had no room for · 20 tracks from the end that were tried · 24 warps with none · rest 0
    then `tracks` times, a track, 64: 0 clock at its begin · 8 at its end · 16 global timer at its begin · 24 at its end
                 32 launch · 36 multiprocessor · 40 block · 44 warp · 48 events wanted · 52 state (0 free, 1 begun,
                 2 ended) · rest 0
                 its `events` records, 16 each: 0 clock · 8 region, with bit 31 set at its end · 12 number of the track

Clocks count cycles of the multiprocessor that a block runs on: the global timer steps in 32 ns on Hopper and in about
1 µs on other GPUs, too coarse for a region, so it only anchors each track at both ends. A warp that begins
takes the track of its place in the launch (block and warp), or the next free one from the end where that is taken,
and then stores to its own alone. Whoever holds the buffer can have written anything:
sizes come from the reader's own Layout, never from the buffer.
"""

import struct
from typing import Any

from msgspec import Struct

MAGIC = 0x5254434B
VERSION = 1
HEADER_BYTES = TRACK_BYTES = 64
RECORD_BYTES = 16
END = 1 << 31
REGIONS = 64  # numbers of regions lie below
MAX_BYTES = 64 * 2**20
MAX_FAULTS = 8  # of each kind that are told one by one
_HEADER = struct.Struct("<7I36x")
_TRACK = [
    *(("begin", "<u8"), ("end", "<u8"), ("timer_begin", "<u8"), ("timer_end", "<u8"), ("launch", "<u4")),
    *(("sm", "<u4"), ("block", "<u4"), ("warp", "<u4"), ("wanted", "<u4"), ("state", "<u4"), ("rest", "<u8")),
]
_RECORD = [("clock", "<u8"), ("mark", "<u4"), ("track", "<u4")]
MAX_SM, MAX_WARP = 4096, 64  # multiprocessors of a GPU, warps of a block
FREE, BEGUN, ENDED = range(3)


class Layout(Struct, frozen=True):
    """So many tracks of so many events each."""

    tracks: int
    events: int

    @property
    def stride(self) -> int:
        """Bytes from a track to the next."""
        return TRACK_BYTES + self.events * RECORD_BYTES

    @property
    def size(self) -> int:
        """Size of the buffer."""
        return HEADER_BYTES + self.tracks * self.stride

    def header(self) -> bytes:
        """What the buffer begins with before a kernel runs; all that follows is zero."""
        return _HEADER.pack(MAGIC, VERSION, self.tracks, self.events, 0, 0, 0)


def fitting(size: int, tracks: int, events: int) -> Layout:
    """A layout of at most `size` bytes for so many tracks of so many events; rather fewer events than tracks, but 64.

    Raises ValueError where not even one track fits.
    """
    room = min(size, MAX_BYTES) - HEADER_BYTES
    least = min(events, 64)
    tracks = min(max(tracks, 1), room // (TRACK_BYTES + least * RECORD_BYTES))
    if tracks < 1:
        raise ValueError(f"{size} bytes are too few for a trace")
    return Layout(tracks, max(least, min(events, (room // tracks - TRACK_BYTES) // RECORD_BYTES)))


class Event(Struct, frozen=True):
    """A region begins or ends, at a clock of its multiprocessor."""

    clock: int
    region: int
    is_end: bool


class Recorded(Struct, frozen=True):
    """One warp's track; clocks in cycles, timers in nanoseconds. `wanted`: events that it would have recorded."""

    launch: int
    sm: int
    block: int
    warp: int
    begin: int
    end: int
    timer_begin: int
    timer_end: int
    events: tuple[Event, ...] = ()
    wanted: int = 0
    is_ended: bool = True

    @property
    def dropped(self) -> int:
        """Events beyond the track's capacity."""
        return max(0, self.wanted - len(self.events))


class Buffer(Struct, frozen=True):
    """What a buffer says. `claimed`: warps that asked for a track; `notes`: what makes no sense and is left out."""

    tracks: tuple[Recorded, ...] = ()
    claimed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def dropped_tracks(self) -> int:
        """Warps that found no track free."""
        return max(0, self.claimed - len(self.tracks))

    @property
    def most_events(self) -> int:
        """Of the longest track, as it wanted to be."""
        return max((track.wanted for track in self.tracks), default=0)


def decode(data: bytes, layout: Layout) -> Buffer:
    """Read a buffer of this layout. Never raises for its content: what makes no sense is left out and told."""
    import numpy as np

    if len(data) != layout.size:
        return Buffer(notes=(f"the buffer has {len(data)} bytes, and {layout.size} are expected",))
    magic, version, tracks, events, claimed, _, missed = _HEADER.unpack_from(data)
    if (magic, version, tracks, events) != (MAGIC, VERSION, layout.tracks, layout.events):
        return Buffer(notes=("the buffer's header was overwritten",))
    kind = np.dtype([("head", _TRACK), ("records", _RECORD, (layout.events,))])
    content: Any = np.frombuffer(data, kind, count=layout.tracks, offset=HEADER_BYTES)
    found: list[Recorded] = []
    faults: list[str] = []
    taken = np.flatnonzero(content["head"]["state"] != FREE).tolist()
    for number in taken:
        head = dict(zip(content["head"].dtype.names, content["head"][number].item(), strict=True))
        fault = _fault(head)
        if fault:
            faults.append(f"track {number}: {fault}")
            continue
        found.append(_track(number, head, content["records"][number], layout, faults))
    return Buffer(tuple(found), max(claimed, len(taken) + missed), _few(faults))


def _fault(head: dict[str, int]) -> str:
    """Why a track is none, or nothing."""
    if head["state"] not in (BEGUN, ENDED):
        return f"state {head['state']}"
    if head["sm"] >= MAX_SM or head["warp"] >= MAX_WARP:
        return f"warp {head['warp']} on multiprocessor {head['sm']}"
    if head["state"] == ENDED and (head["end"] < head["begin"] or head["timer_end"] < head["timer_begin"]):
        return "it ends before it begins"
    return ""


def _track(number: int, head: dict[str, int], records: Any, layout: Layout, faults: list[str]) -> Recorded:
    ended = head["state"] == ENDED
    # A warp that did not end its track has not counted its events either.
    count = min(head["wanted"], layout.events) if ended else layout.events
    events: list[Event] = []
    last = head["begin"]
    for clock, mark, track in records[:count].tolist():
        region = mark & ~END
        if not clock:  # nothing was recorded here
            break
        if track != number or region >= REGIONS or clock < last or (ended and clock > head["end"]):
            faults.append(f"track {number}: event {len(events)} makes no sense; what follows is left out")
            break
        events.append(Event(clock, region, bool(mark & END)))
        last = clock
    wanted = max(head["wanted"], len(events)) if ended else len(events)
    return Recorded(
        *(head["launch"], head["sm"], head["block"], head["warp"], head["begin"], head["end"] if ended else last),
        *(head["timer_begin"], head["timer_end"] if ended else 0),
        events=tuple(events),
        wanted=wanted,
        is_ended=ended,
    )


def _few(faults: list[str]) -> tuple[str, ...]:
    more = len(faults) - MAX_FAULTS
    return (*faults[:MAX_FAULTS], *((f"and {more} more such faults",) if more > 0 else ()))
