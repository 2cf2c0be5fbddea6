"""Traced calls of a kernel: a candidate of its own, whose builds leave records in a buffer beside the slot.

The first call compiles and tunes, the second tells how much there is to record, and a third records it where the buffer
was not laid out for so much.
"""

import contextlib
from collections.abc import Callable

import torch

from kernelci.tracing import records, regions
from kernelci.tracing.prelude import TraceAt
from kernelci.tracing.records import Buffer, Layout
from kernelci.tracing.regions import Trace
from kernelci.workbench.arena import ALIGNMENT_BYTES, Arena
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.session import Session
from kernelci.workbench.subject import Subject

BUFFER_BYTES = 8 * 2**20  # half a million events: more than a reader looks at
FIRST = (7_000, 64)  # tracks, and events of each, before it is known how many there are
Opened = Callable[[Arena, TraceAt], Session]


def trace(
    opened: Opened,
    one: Drawn,
    names: tuple[str, ...],
    device: str,
    compile_s: float = 0.0,
    size: int = BUFFER_BYTES,
    sm_clock_hz: Callable[[], float | None] = lambda: None,
) -> Trace:
    """The trace of one call, whatever the buffer says; the first one has so much longer, to compile. `sm_clock_hz` is
    asked right after it: what the clock is taken for where the call is too short to measure it.

    Raises Stop where a call does not come back.
    """
    subject = Subject(one)
    begin = -(-subject.size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    with contextlib.closing(Arena(device, begin + size)) as arena:
        at = TraceAt(begin, size, names)
        with contextlib.closing(opened(arena, at)) as session:
            layout = records.fitting(size, *FIRST)
            call_s = session.limits.call_s
            session.limits.call_s = call_s + compile_s  # nothing that was compiled before serves a trace
            _called(session, subject, at, layout)
            session.limits.call_s = call_s
            found = _called(session, subject, at, layout)
            if found.dropped_tracks or found.most_events > layout.events:
                # Of the calls alike, the third needs what the second had no room for.
                layout = records.fitting(size, found.claimed, found.most_events)
                found = _called(session, subject, at, layout)
            clock_hz = sm_clock_hz() or 1e9  # not known: a cycle is shown as a nanosecond
    return regions.build(found, names, clock_hz * 1e-9)


def _called(session: Session, subject: Subject, at: TraceAt, layout: Layout) -> Buffer:
    """One call on an empty buffer, and what it left there."""
    arena, plan = session.arena, subject.plan(0)
    subject.fill(arena.raw(plan.base, plan.end), plan, subject.zeros(arena.device))
    buffer = arena.raw(at.offset, at.offset + layout.size)
    buffer.zero_()
    header = layout.header()
    buffer[: len(header)].copy_(torch.frombuffer(bytearray(header), dtype=torch.uint8))
    if arena.device != "cpu":
        torch.cuda.synchronize()
    session.call(subject.message(plan))
    return records.decode(buffer.cpu().numpy().tobytes(), layout)
