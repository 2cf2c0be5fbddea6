"""The reader of trace buffers: what was written comes back, and nothing that anybody wrote makes it fail."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.tracing import records, regions, table, writing
from kernelci.tracing.records import END, Event, Layout, Recorded, decode, fitting

LAYOUT = Layout(4, 3)


def track(sm: int = 0, warp: int = 0, events: tuple[Event, ...] = (), wanted: int | None = None) -> Recorded:
    """A sound track from cycle 100 to 200."""
    return Recorded(7, sm, 5, warp, 100, 200, 1000, 1050, events, len(events) if wanted is None else wanted)


def buffer(*tracks: Recorded, claimed: int | None = None, layout: Layout = LAYOUT) -> bytearray:
    """A buffer as a kernel leaves it."""
    data = bytearray(layout.header() + writing.tracks(tracks, 0, layout)).ljust(layout.size, b"\0")
    struct.pack_into("<I", data, 16, len(tracks) if claimed is None else claimed)
    return data


LOADS = (Event(110, 0, False), Event(150, 0, True))


def test_what_was_recorded_is_read() -> None:
    tracks = (track(3, 1, LOADS), track(4, 2))
    assert records.Buffer(tracks, 2) == decode(bytes(buffer(*tracks)), LAYOUT)


def test_an_empty_buffer_is_no_track() -> None:
    assert records.Buffer() == decode(bytes(buffer()), LAYOUT)


def test_events_beyond_the_capacity_are_counted() -> None:
    found = decode(bytes(buffer(track(events=LOADS, wanted=9))), LAYOUT)
    # Three lie in the track, of which the third is blank: it names track 0, but ran backwards.
    assert (7, 9) == (found.tracks[0].dropped, found.most_events)


def test_warps_without_a_track_are_counted() -> None:
    assert 6 == decode(bytes(buffer(track(), claimed=7)), LAYOUT).dropped_tracks


def test_a_warp_that_never_ended_keeps_what_it_recorded() -> None:
    data = buffer(track(events=LOADS))
    struct.pack_into("<QI", data, 64 + 8, 0, 0)
    struct.pack_into("<II", data, 64 + 48, 0, records.BEGUN)
    (found,) = decode(bytes(data), LAYOUT).tracks
    assert (LOADS, 150, False) == (found.events, found.end, found.is_ended)


@pytest.mark.parametrize(
    ("offset", "value", "told"),
    [
        (52, 9, "state 9"),
        (36, 70_000, "multiprocessor 70000"),
        (44, 64, "warp 64"),
        (8, 1, "ends before it begins"),
    ],
)
def test_a_track_that_makes_no_sense_is_left_out_and_told(offset: int, value: int, told: str) -> None:
    data = buffer(track(events=LOADS), track(1))
    struct.pack_into("<I", data, 64 + offset, value)
    found = decode(bytes(data), LAYOUT)
    assert [1] == [each.sm for each in found.tracks]
    assert told in found.notes[0]


@pytest.mark.parametrize(
    ("clock", "mark", "number"),
    [(90, 0, 0), (999, END, 0), (150, 64, 0), (150, 0, 2)],
    ids=["backwards", "after the end", "no such region", "another track"],
)
def test_an_event_that_makes_no_sense_ends_its_track(clock: int, mark: int, number: int) -> None:
    data = buffer(track(events=LOADS))
    struct.pack_into("<QII", data, 64 + 64 + 16, clock, mark, number)
    found = decode(bytes(data), LAYOUT)
    assert LOADS[:1] == found.tracks[0].events
    assert ("track 0: event 1 makes no sense; what follows is left out",) == found.notes


def test_many_faults_are_told_in_few_words() -> None:
    layout = Layout(100, 1)
    data = buffer(*[track()] * 100, layout=layout)
    for number in range(100):
        struct.pack_into("<I", data, 64 + number * layout.stride + 52, 5)
    assert (9, "and 92 more such faults") == ((notes := decode(bytes(data), layout).notes).__len__(), notes[-1])


@pytest.mark.parametrize("size", [0, 63, LAYOUT.size - 1, LAYOUT.size + 1])
def test_a_buffer_of_another_size_is_told(size: int) -> None:
    assert (f"the buffer has {size} bytes, and {LAYOUT.size} are expected",) == decode(b"\0" * size, LAYOUT).notes


def test_a_header_that_names_another_size_is_refused() -> None:
    data = buffer(track())
    struct.pack_into("<I", data, 8, 2**31)
    assert ("the buffer's header was overwritten",) == decode(bytes(data), LAYOUT).notes


@given(st.binary(min_size=LAYOUT.size - 64, max_size=LAYOUT.size - 64), st.integers(0, 2**32 - 1))
def test_whatever_lies_there_is_read(content: bytes, claimed: int) -> None:
    data = bytearray(LAYOUT.header() + content)
    struct.pack_into("<I", data, 16, claimed)
    _holds(bytes(data))


@given(st.lists(st.tuples(st.integers(0, LAYOUT.size - 4), st.integers(0, 2**32 - 1)), max_size=6))
def test_a_sound_buffer_with_holes_is_read(writes: list[tuple[int, int]]) -> None:
    data = buffer(track(0, 0, LOADS), track(1, 1, LOADS, 9), track(2, 2))
    for offset, value in writes:
        struct.pack_into("<I", data, offset, value)
    _holds(bytes(data))


def _holds(data: bytes) -> None:
    """Whatever was read, its table is consistent: regions and gaps are the lifetime."""
    found = decode(data, LAYOUT)
    assert len(found.tracks) <= LAYOUT.tracks
    assert all(len(each.events) <= LAYOUT.events for each in found.tracks)
    summed = table.summed(regions.build(found, ("load", "compute")))
    assert summed.lifetime_ns == pytest.approx(sum(line.time_ns for line in summed.lines), rel=1e-6, abs=1e-3)


@given(st.integers(200, 2**27), st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_layout_fits_its_room(size: int, tracks: int, events: int) -> None:
    try:
        found = fitting(size, tracks, events)
    except ValueError:
        assert size < 64 + 64 + 64 * 16
        return
    assert found.size <= min(size, records.MAX_BYTES)
    assert 1 <= found.tracks <= max(tracks, 1)
    assert min(events, 64) <= found.events <= events
