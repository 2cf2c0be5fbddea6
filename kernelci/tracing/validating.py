"""What is wrong with a file of the Trace Event Format (JSON), by the format's definition.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: complete events (X) of one thread must
nest, begins (B) and ends (E) must pair, metadata (M) names what is there. Only the phases that kernelci writes.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Number = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Microseconds = Annotated[float, Meta(ge=0.0, le=1e15)]
Name = Annotated[str, Meta(min_length=1, max_length=1000)]
MOST = 20  # faults that are told
SLACK_US = 1e-3  # of the last digit that is written, where two events meet
Names = Literal["process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"]


class Event(Struct, frozen=True, tag_field="ph", kw_only=True):
    """What all events have."""

    pid: Number
    tid: Number


class Metadata(Event, frozen=True, tag="M", kw_only=True):
    """Names a process or a thread."""

    name: Names
    args: dict[str, str | int]


class Complete(Event, frozen=True, tag="X", kw_only=True):
    """Something with a beginning and a duration."""

    name: Name
    ts: Microseconds
    dur: Microseconds
    cat: str = ""
    args: dict[str, Any] = {}


class Begin(Event, frozen=True, tag="B", kw_only=True):
    """Something begins."""

    name: Name
    ts: Microseconds
    cat: str = ""
    args: dict[str, Any] = {}


class End(Event, frozen=True, tag="E", kw_only=True):
    """The innermost thing that has begun ends."""

    ts: Microseconds
    name: str = ""
    cat: str = ""
    args: dict[str, Any] = {}


class Instant(Event, frozen=True, tag="i", kw_only=True):
    """A moment."""

    name: Name
    ts: Microseconds
    s: Literal["g", "p", "t"] = "t"
    cat: str = ""
    args: dict[str, Any] = {}


class Flow(Event, frozen=True, tag="s", kw_only=True):
    """An arrow leaves here."""

    name: Name
    ts: Microseconds
    id: int | str
    cat: str = ""
    args: dict[str, Any] = {}


class FlowEnd(Flow, frozen=True, tag="f", kw_only=True):
    """An arrow arrives here."""

    bp: Literal["e"] = "e"


class Counter(Event, frozen=True, tag="C", kw_only=True):
    """A number over time."""

    name: Name
    ts: Microseconds
    args: dict[str, float]


class File(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The object form of a file."""

    trace_events: list[Metadata | Complete | Begin | End | Instant | Flow | FlowEnd | Counter] = msgspec.field(
        name="traceEvents"
    )
    unit: Literal["ns", "ms"] = msgspec.field(name="displayTimeUnit", default="ms")
    other: dict[str, str] = msgspec.field(name="otherData", default={})


def read(data: bytes) -> File:
    """The file. Raises msgspec.ValidationError, or DecodeError for what is no JSON."""
    return msgspec.json.decode(data, type=File)


def faults(data: bytes) -> list[str]:
    """What is wrong, at most MOST faults; nothing: a viewer shows all of it."""
    try:
        events = read(data).trace_events
    except (msgspec.MsgspecError, RecursionError) as error:
        return [str(error)]
    threads: dict[tuple[int, int], list[Complete]] = defaultdict(list)
    for event in events:
        if isinstance(event, Complete):
            threads[event.pid, event.tid].append(event)
    found = [fault for place, spans in threads.items() for fault in _crossing(place, spans)]
    return [*found, *_unpaired(events), *_unnamed(events)][:MOST]


def _crossing(place: tuple[int, int], spans: list[Complete]) -> Iterable[str]:
    inside: list[Complete] = []
    for span in sorted(spans, key=lambda each: (each.ts, -each.dur)):
        while inside and inside[-1].ts + inside[-1].dur <= span.ts + SLACK_US:
            inside.pop()
        if inside and span.ts + span.dur > inside[-1].ts + inside[-1].dur + SLACK_US:
            yield f"{span.name} at {span.ts} µs crosses the end of {inside[-1].name} in thread {place}"
        inside.append(span)


def _unpaired(events: Iterable[Event]) -> Iterable[str]:
    depth: dict[tuple[int, int], int] = defaultdict(int)
    for event in events:
        if isinstance(event, Begin | End):
            depth[event.pid, event.tid] += 1 if isinstance(event, Begin) else -1
            if depth[event.pid, event.tid] < 0:
                yield f"an end without a beginning in thread {(event.pid, event.tid)}"
    yield from (f"{count} events without an end in thread {place}" for place, count in depth.items() if count > 0)


def _unnamed(events: Iterable[Event]) -> Iterable[str]:
    known = {event.pid for event in events if isinstance(event, Metadata) and event.name == "process_name"}
    used = {event.pid for event in events if not isinstance(event, Metadata)}
    yield from (f"process {pid} has no name" for pid in sorted(used - known))
