"""What Proton's instrumentation of a Triton kernel leaves in a launch's scratch memory, as tracks of our own form.

Little-endian, a block after another, `stride` bytes each, offsets in bytes:

    0 0xDEADBEEF · 4 block · 8 multiprocessor · 12 bytes of its rings · 16 global timer at its begin · 24 before its end
    32 after it · 40 for each warp the words that it recorded · then a ring of events for each warp

An event is two words: bit 31 set at an end, the scope's number in bits 23 to 30, the clock's bits 32 to 42; then its
bits 0 to 31. A ring keeps the last events. Seen alike in Triton 3.6 to 3.9 (a test reads it out of the PTX).

Proton reads no clock where a block begins and ends, so a track reaches from its block's first event to the last one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kernelci.tracing.records import MAX_SM, MAX_WARP, REGIONS, Event, Recorded

PREAMBLE = 0xDEADBEEF
HEAD_BYTES, EVENT_BYTES = 40, 8
CLOCK_BITS = 43
_SCOPES = 256


def ring_events(wanted: int) -> int:
    """The size of a ring for so many events: Proton masks positions, so a power of two."""
    return 1 << max(2, max(wanted, 1) - 1).bit_length()


def numbers(scopes: Sequence[tuple[int, str]], regions: Sequence[str]) -> dict[int, int]:
    """The region's number of each scope's; scopes that the card does not name come after those that it does."""
    unknown = list(dict.fromkeys(name for _, name in scopes if name not in regions))
    every = [*regions, *unknown]
    return {scope: every.index(name) for scope, name in scopes if every.index(name) < REGIONS}


def read(
    data: bytes, warps: int, stride: int, regions: Mapping[int, int], launch: int = 0, most: int = 2**31
) -> list[Recorded]:
    """The tracks of the blocks that ran to their end, the earliest block first, about `most` tracks at most.

    `warps` of a block; `stride`: bytes from a block to the next; `regions`: the number of each scope's region, other
    scopes are left out. What is no block is left out too: never raises for what the bytes say.
    """
    blocks = _blocks(data, warps, stride)
    return [track for block in blocks[: -(-most // max(1, warps))] for track in _block(block, regions, launch)]


def count(data: bytes, warps: int, stride: int) -> int:
    """How many warps there are."""
    return len(_blocks(data, warps, stride)) * warps


def _blocks(data: bytes, warps: int, stride: int) -> Any:
    """The blocks that make sense and recorded something, the earliest first; rings as large as the first one says."""
    import numpy as np

    if not 0 < warps <= MAX_WARP or not HEAD_BYTES + 4 * warps <= stride <= max(1, len(data)):
        return []
    heads: Any = np.frombuffer(data, _kind(warps, stride, 0), count=len(data) // stride)
    sound = (heads["preamble"] == PREAMBLE) & (heads["sm"] < MAX_SM) & (heads["begin"] <= heads["end"])
    sound &= (heads["begin"] > 0) & heads["words"].any(axis=1)
    if not sound.any():
        return []
    room = stride - HEAD_BYTES - 4 * warps
    events = min(int(heads["size"][sound][0]), room) // (EVENT_BYTES * warps)
    blocks: Any = np.frombuffer(data, _kind(warps, stride, events), count=len(data) // stride)[sound]
    return blocks[np.argsort(blocks["begin"], kind="stable")]


def _kind(warps: int, stride: int, events: int) -> Any:
    import numpy as np

    return np.dtype(
        {
            "names": ["preamble", "block", "sm", "size", "begin", "end", "words", "rings"],
            "formats": [*["<u4"] * 4, "<u8", "<u8", ("<u4", warps), ("<u4", (warps, events, 2))],
            "offsets": [0, 4, 8, 12, 16, 24, HEAD_BYTES, HEAD_BYTES + 4 * warps],
            "itemsize": stride,
        }
    )


def _block(block: Any, regions: Mapping[int, int], launch: int) -> list[Recorded]:
    counts = [int(words) // 2 for words in block["words"]]
    warps = [_events(ring, count, regions) for ring, count in zip(block["rings"], counts, strict=True)]
    clocks = [event.clock for events in warps for event in events]
    if not clocks:
        return []
    if max(clocks) - min(clocks) >= 1 << (CLOCK_BITS - 1):  # the counter ran over meanwhile
        warps = [[_later(event) for event in events] for events in warps]
        clocks = [event.clock for events in warps for event in events]
    ends = (min(clocks), max(clocks), int(block["begin"]), int(block["end"]))
    place = (launch, int(block["sm"]), int(block["block"]))
    size = len(block["rings"][0])
    return [
        _track((*place, warp), ends, events, count if count > size else 0)
        for warp, (events, count) in enumerate(zip(warps, counts, strict=True))
    ]


def _track(
    place: tuple[int, int, int, int], ends: tuple[int, int, int, int], events: list[Event], cut: int
) -> Recorded:
    """A warp's track from its block's ends. `cut`: how many events there were, if its ring lost some of them."""
    events = sorted(events, key=lambda event: event.clock)
    if not cut or not events:
        return Recorded(*place, *ends, events=tuple(events), wanted=len(events))
    return Recorded(*place, events[0].clock, *ends[1:], events=tuple(events), wanted=cut)


def _events(ring: Any, count: int, regions: Mapping[int, int]) -> list[Event]:
    """The events of a warp in the order in which it recorded them."""
    size = len(ring)
    order = range(count) if count <= size else [(count + at) % size for at in range(size)]
    found = []
    for high, low in (ring[at].tolist() for at in order):
        region = regions.get(high >> 23 & (_SCOPES - 1))
        if region is not None:
            found.append(Event((high & 0x7FF) << 32 | low, region, bool(high >> 31)))
    return found


def _later(event: Event) -> Event:
    clock = event.clock if event.clock >> (CLOCK_BITS - 1) else event.clock + (1 << CLOCK_BITS)
    return Event(clock, event.region, event.is_end)
