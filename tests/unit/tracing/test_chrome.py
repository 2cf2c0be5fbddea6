"""The file for Perfetto: valid by the format's definition, and what the trace says."""

import json
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.tracing import chrome
from kernelci.tracing.records import Buffer, Event, Recorded
from kernelci.tracing.regions import Region, Trace, Track, build
from kernelci.tracing.validating import faults

TRACE = Trace(
    (
        Track(1, 7, 2, 0.0, 1000.0, (Region("load", 100.0, 900.0), Region("wait", 200.0, 300.0, 1)), launch=5),
        Track(0, 6, 0, 50.0, 950.0, (Region("compute", 60.0, 940.0),), launch=5),
    ),
    notes=("2 warps never came to their end",),
    step_ns=32,
)


def events(data: bytes, phase: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(data)["traceEvents"] if event["ph"] == phase]


def test_the_file_is_valid() -> None:
    assert [] == faults(chrome.encode(TRACE, "softmax/cuda"))


def test_a_multiprocessor_is_a_process_and_a_warp_a_thread() -> None:
    named = {event["args"].get("name") for event in events(chrome.encode(TRACE, "k"), "M")}
    assert {"SM 0", "SM 1", "block 7 warp 2", "block 6 warp 0", None} == named


def test_times_are_microseconds() -> None:
    (wait,) = [event for event in events(chrome.encode(TRACE, "k"), "X") if event["name"] == "wait"]
    assert (0.2, 0.1, 1) == (wait["ts"], wait["dur"], wait["pid"])


def test_notes_travel_with_the_file() -> None:
    assert "2 warps never came to their end" == json.loads(chrome.encode(TRACE, "k"))["otherData"]["notes"]


def test_events_of_the_host_are_added() -> None:
    name = {"ph": "M", "name": "process_name", "pid": 9999, "tid": 0, "args": {"name": "host"}}
    launch = {"ph": "X", "name": "launch", "pid": 9999, "tid": 0, "ts": 1, "dur": 2}
    data = chrome.encode(TRACE, "k", [name, launch])
    assert [] == faults(data)
    assert launch in events(data, "X")


def test_a_large_trace_leaves_tracks_out_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome.shown, "__defaults__", (4,))
    data = chrome.encode(TRACE, "k")
    assert [] == faults(data)
    assert {0} == {event["pid"] for event in events(data, "X")}
    assert "1 tracks are left out of this file" in json.loads(data)["otherData"]["notes"]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 10**6)))),
        max_size=6,
    )
)
def test_every_trace_gives_a_valid_file_whose_regions_and_gaps_are_lifetimes(
    shapes: list[tuple[int, list[tuple[int, bool, int]]]],
) -> None:
    tracks = []
    for warp, (sm, steps) in enumerate(shapes):
        clock, marks = 10**12, []
        for region, is_end, later in steps:
            clock += later
            marks.append(Event(clock, region, is_end))
        tracks.append(Recorded(0, sm, 0, warp, 10**12, clock + 9, 0, clock - 10**12, tuple(marks), len(marks)))
    trace = build(Buffer(tuple(tracks), len(tracks)), ("load", "compute"))
    data = chrome.encode(trace, "k")
    assert [] == faults(data)
    _check_lifetimes(events(data, "X"))


def _check_lifetimes(spans: list[dict[str, Any]]) -> None:
    """Of each thread: regions lie within its lifetime, and together with the gaps they are its lifetime."""
    threads: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for span in spans:
        threads[span["pid"], span["tid"]].append(span)
    for found in threads.values():
        (life,) = [span for span in found if span["cat"] == "lifetime"]
        regions = sorted((span["ts"], span["ts"] + span["dur"]) for span in found if span["cat"] == "region")
        covered, at, gaps = 0.0, life["ts"], 0.0
        for begin, end in regions:
            gaps += max(0.0, begin - at)
            covered += max(0.0, end - max(begin, at))
            at = max(at, end)
        gaps += life["ts"] + life["dur"] - at
        assert covered + gaps == pytest.approx(life["dur"], rel=1e-6, abs=1e-2)


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([{"ph": "X", "name": "a", "pid": 0, "tid": 0, "ts": -1, "dur": 1}], "ts"),
        ([{"ph": "X", "name": "a", "pid": 0, "tid": 0, "ts": 1}], "dur"),
        ([{"ph": "?", "name": "a", "pid": 0, "tid": 0}], "Invalid value '?'"),
        ([{"ph": "E", "pid": 0, "tid": 0, "ts": 1}], "an end without a beginning"),
        ([{"ph": "B", "name": "a", "pid": 0, "tid": 0, "ts": 1}], "1 events without an end"),
        (
            [{"ph": "X", "name": name, "pid": 0, "tid": 0, "ts": ts, "dur": 10} for name, ts in (("a", 0), ("b", 5))],
            "b at 5.0 µs crosses the end of a",
        ),
        ([{"ph": "i", "name": "a", "pid": 4, "tid": 0, "ts": 1}], "process 4 has no name"),
    ],
)
def test_faults_are_found(events: list[dict[str, Any]], told: str) -> None:
    assert told in faults(json.dumps({"traceEvents": events}).encode())[0]


def test_times_begin_at_zero() -> None:
    tracks = [Recorded(0, sm, 0, 0, 1000 + sm, 90_000 + sm, 64 * (sm < 2), 60_000) for sm in range(3)]
    assert [] == faults(chrome.encode(build(Buffer(tuple(tracks), 3), ()), "k"))
    assert 0 == min(track.begin_ns for track in build(Buffer(tuple(tracks), 3), ()).tracks)


def test_what_is_no_file_is_a_fault() -> None:
    assert 1 == len(faults(b"\xff{"))
    assert 1 == len(faults(b"[" * 100_000))
