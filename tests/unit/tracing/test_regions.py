"""From a buffer to tracks of regions on one time axis."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.tracing.clocks import align
from kernelci.tracing.records import Buffer, Event, Recorded
from kernelci.tracing.regions import GAP, Region, Track, build, nested

NAMES = ("load", "compute", "epilogue")


def marks(text: str) -> list[Event]:
    """`+0 -0` is a region 0 that begins at cycle 10 and ends at 20, and so on in tens."""
    return [Event(10 * at, int(mark[1:]), mark[0] == "-") for at, mark in enumerate(text.split(), 1)]


@pytest.mark.parametrize(
    ("text", "regions", "told"),
    [
        ("+0 -0 +1 -1", [("load", 10, 20, 0), ("compute", 30, 40, 0)], []),
        ("+0 +1 -1 -0", [("load", 10, 40, 0), ("compute", 20, 30, 1)], []),
        ("+0 +0 -0 -0", [("load", 10, 40, 0), ("load", 20, 30, 1)], []),
        ("-0 +1 -1", [("compute", 20, 30, 0)], ["load ends without having begun"]),
        ("+0", [("load", 10, 99, 0)], ["load is open where its track ends"]),
        (
            "+0 +1 -0 -1",
            [("load", 10, 30, 0), ("compute", 20, 30, 1)],
            ["load ends before compute, which began in it", "compute ends without having begun"],
        ),
        ("+7 -7", [("region 7", 10, 20, 0)], []),
    ],
)
def test_events_become_regions(text: str, regions: list[tuple[str, int, int, int]], told: list[str]) -> None:
    found: Counter[str] = Counter()
    assert regions == nested(marks(text), 99, NAMES, found)
    assert told == list(found)


def test_a_lifetime_is_cut_into_innermost_regions_and_gaps() -> None:
    track = Track(0, 0, 0, 0.0, 100.0, (Region("load", 10, 60), Region("wait", 20, 30, 1), Region("compute", 70, 90)))
    assert [
        (GAP, 0, 10), ("load", 10, 20), ("wait", 20, 30), ("load", 30, 60), (GAP, 60, 70), ("compute", 70, 90),
        (GAP, 90, 100),
    ] == [(piece.name, piece.begin_ns, piece.end_ns) for piece in track.pieces()]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 50)), max_size=40))
def test_pieces_fill_the_lifetime_without_overlap(steps: list[tuple[int, bool, int]]) -> None:
    clock, events = 0, []
    for region, is_end, later in steps:
        clock += later
        events.append(Event(clock, region, is_end))
    recorded = Recorded(0, 0, 0, 0, 0, clock + 5, 0, 0, tuple(events), len(events))
    (track,) = build(Buffer((recorded,), 1), NAMES).tracks
    pieces = track.pieces()
    assert track.lifetime_ns == pytest.approx(sum(piece.end_ns - piece.begin_ns for piece in pieces))
    assert all(one.end_ns == other.begin_ns for one, other in pairwise(pieces))


def anchored(sm: int, begin_ns: int, end_ns: int, rate: float, shift: int, step: int = 32) -> Recorded:
    """A track of a multiprocessor whose counter was at `shift` when the timer was at 0; the timer steps."""
    clocks = (int(shift + begin_ns * rate), int(shift + end_ns * rate))
    return Recorded(0, sm, 0, 0, *clocks, begin_ns // step * step, end_ns // step * step)


@pytest.mark.parametrize("step", [1, 32, 1024])
def test_multiprocessors_come_to_one_axis(step: int) -> None:
    shifts = {0: 10**15, 1: 5, 2: 7 * 10**9}
    tracks = [
        anchored(sm, begin, begin + 90_000, 1.755, shift, step)
        for sm, shift in shifts.items()
        for begin in range(100_000, 400_000, 17_777)
    ]
    axis = align(tracks)
    assert axis.cycles_per_ns == pytest.approx(1.755, rel=0.01)
    times = [axis.ns(sm, int(shift + 200_000 * 1.755)) for sm, shift in shifts.items()]
    assert max(times) - min(times) < 2 * step + 1


def test_too_short_a_trace_takes_the_rate_that_is_given() -> None:
    found = build(Buffer((anchored(0, 0, 300, 1.7, 0),), 1), NAMES, 2.0)
    assert 2.0 == found.cycles_per_ns
    assert ("too short to measure the clock: 2 cycles per ns are assumed",) == found.notes


def test_what_found_no_room_is_told_and_its_track_ends_early() -> None:
    full = Recorded(0, 0, 0, 0, 100, 900, 0, 0, (Event(200, 0, False), Event(300, 0, True)), wanted=50)
    found = build(Buffer((full,), claimed=9), NAMES)
    assert 200.0 == found.tracks[0].lifetime_ns
    assert [
        "8 of 9 warps found no room: the first ones are shown",
        "48 events of 1 warps found no room: their tracks end early",
    ] == [note for note in found.notes if "room" in note]


def test_a_warp_without_an_end_is_told() -> None:
    lost = Recorded(0, 0, 0, 0, 100, 300, 0, 0, (Event(300, 0, False),), 1, is_ended=False)
    assert "1 warps never came to their end" in build(Buffer((lost,), 1), NAMES).notes


def test_a_track_of_beginnings_alone_costs_no_more_than_any_other() -> None:
    """Ends that match nothing are not looked for among all that is open: that would take hours."""
    count = 200_000
    told: Counter[str] = Counter()
    events = [Event(at, at // count, at >= count) for at in range(2 * count)]
    assert count == len(nested(events, 2 * count, NAMES, told))
    assert {"compute ends without having begun": count, "load is open where its track ends": count} == told
