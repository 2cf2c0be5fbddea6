"""A trace as JSON of the Trace Event Format, which chrome://tracing and ui.perfetto.dev open.

A multiprocessor is a process there and a warp of a block a thread; times are microseconds.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kernelci.tracing.regions import Trace, Track

MAX_EVENTS = 100_000  # that a file gets, whole tracks only; viewers grow slow with more
LIFETIME = "warp"


def shown(trace: Trace, limit: int = MAX_EVENTS) -> tuple[Track, ...]:
    """The tracks that fit, whole multiprocessors first: the overlap on one is what the eye looks for."""
    found: list[Track] = []
    count = 0
    for track in sorted(trace.tracks, key=lambda each: (each.sm, each.begin_ns, each.block, each.warp)):
        count += 2 + len(track.regions)
        if count > limit:
            break
        found.append(track)
    return tuple(found)


def encode(trace: Trace, title: str, host: list[dict[str, Any]] | None = None) -> bytes:
    """The file's bytes. `host`: further events in the same form, for example of the call's launches."""
    tracks = shown(trace)
    left_out = len(trace.tracks) - len(tracks)
    notes = [*trace.notes, *((f"{left_out} tracks are left out of this file",) if left_out else ())]
    document = {
        "displayTimeUnit": "ns",
        "otherData": {"title": title, "notes": "; ".join(notes), "step_ns": f"{trace.step_ns:g}"},
        "traceEvents": [*_events(tracks), *(host or ())],
    }
    return msgspec.json.encode(document)


def _events(tracks: tuple[Track, ...]) -> Iterator[dict[str, Any]]:
    threads: dict[tuple[int, int, int, int], int] = {}
    for sm in sorted({track.sm for track in tracks}):
        yield named("process_name", sm, 0, f"SM {sm}")
        yield {"ph": "M", "name": "process_sort_index", "pid": sm, "tid": 0, "args": {"sort_index": sm}}
    for track in tracks:
        key = (track.sm, track.launch, track.block, track.warp)
        if key not in threads:
            threads[key] = len(threads)
            yield named("thread_name", track.sm, threads[key], f"block {track.block} warp {track.warp}")
        place = {"pid": track.sm, "tid": threads[key]}
        where = {"block": track.block, "warp": track.warp, "launch": track.launch}
        yield _complete(LIFETIME, "lifetime", track.begin_ns, track.end_ns, place) | {"args": where}
        for region in track.regions:
            yield _complete(region.name, "region", region.begin_ns, region.end_ns, place)


def _complete(name: str, category: str, begin_ns: float, end_ns: float, place: dict[str, int]) -> dict[str, Any]:
    """A complete event. Both ends are rounded alike, so that what lay within another still does."""
    begin, end = (round(value / 1e3, 4) for value in (begin_ns, end_ns))
    return {"ph": "X", "name": name, "cat": category, "ts": begin, "dur": round(end - begin, 4), **place}


def named(name: str, pid: int, tid: int, text: str) -> dict[str, Any]:
    """What a viewer calls a process or a thread."""
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": text}}
