"""Scratch memory as Proton's instrumentation of a Triton kernel leaves it, for tests."""

import struct
from collections.abc import Sequence

Mark = tuple[int, bool, int]  # scope, is it an end, clock
PREAMBLE = 0xDEADBEEF


def stride(warps: int, events: int) -> int:
    """Bytes of a block, as Triton rounds them."""
    return -(-(40 + 4 * warps + 8 * warps * events) // 128) * 128


def block(
    number: int, sm: int, begin: int, end: int, warps: Sequence[Sequence[Mark]], events: int, preamble: int = PREAMBLE
) -> bytes:
    """A block's bytes; each warp's ring keeps its last `events` marks."""
    head = struct.pack("<4I3Q", preamble, number, sm, 8 * len(warps) * events, begin, end, end + 50)
    counts = b"".join(struct.pack("<I", 2 * len(marks)) for marks in warps)
    rings = b"".join(_ring(marks, events) for marks in warps)
    return (head + counts + rings).ljust(stride(len(warps), events), b"\0")


def _ring(marks: Sequence[Mark], events: int) -> bytes:
    ring = bytearray(8 * events)
    for number, (scope, is_end, clock) in enumerate(marks):
        high = is_end << 31 | scope << 23 | clock >> 32 & 0x7FF
        struct.pack_into("<2I", ring, number % events * 8, high, clock & 0xFFFFFFFF)
    return bytes(ring)
