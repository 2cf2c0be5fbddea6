"""Marks as inline PTX: where they store is where the reader looks."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.tracing import ptx, records
from kernelci.tracing.records import Buffer, Event, Layout, Recorded

from .machine import Thread


def _stored(text: str) -> dict[int, str]:
    """What goes into a track's head, by offset."""
    found = re.findall(r"st\.global\.b\d+ \[(?:at|kernelci_track)(?:\+(\d+))?\], (\w+);", text)
    return {int(offset or 0): value for offset, value in found}


def _offsets(*names: str) -> set[int]:
    fields = np.dtype(records._TRACK).fields
    assert fields is not None
    return {int(fields[name][1]) for name in names}


def test_a_track_begins_where_the_reader_looks() -> None:
    expected = _offsets("begin", "timer_begin", "launch", "sm", "block", "warp")
    assert expected == set(_stored(ptx.begin(0x1000)))


def test_a_track_ends_where_the_reader_looks() -> None:
    assert _offsets("end", "timer_end", "wanted", "state") == set(_stored(ptx.end()))


def test_states_are_the_readers() -> None:
    (at,) = _offsets("state")
    assert str(records.ENDED) == _stored(ptx.end())[at]
    swapped = re.findall(r"atom\.global\.cas\.b32 y, \[at\+(\d+)\], (\d), (\d);", ptx.begin(1))
    assert [(str(at), str(records.FREE), str(records.BEGUN))] * 2 == swapped


@pytest.mark.parametrize(("region", "is_end", "word"), [(0, False, 0), (5, False, 5), (5, True, 5 | 1 << 31)])
def test_a_mark_is_a_record(region: int, is_end: bool, word: int) -> None:
    assert f"[at+{records.TRACK_BYTES}], {{low, high, {word}, kernelci_number}}" in ptx.mark(region, is_end)


def test_the_address_is_a_number() -> None:
    assert "mov.b64 header, 0x7f0012340000;" in ptx.begin(0x7F0012340000)


def test_registers_of_the_function_are_declared_once() -> None:
    names = re.findall(r"^\.reg \.b\d+ (kernelci_.*);$", ptx.begin(1), re.MULTILINE)
    assert ["kernelci_track", "kernelci_number, kernelci_room, kernelci_count"] == names
    assert not re.search(r"\.reg .*kernelci_", ptx.mark(0, False) + ptx.end())


def test_what_else_is_declared_stays_in_its_braces() -> None:
    for text in (ptx.begin(1), ptx.mark(1, True), ptx.end()):
        inner = text[text.index("\n{") if "\n{" in text else 0 :]
        assert inner.strip().startswith("{")
        assert inner.strip().endswith("}")


BASE = 0x7F0012340000
LAYOUT = records.Layout(3, 4)


def _run(threads: list[dict[str, int]], marks: list[tuple[int, bool]], layout: records.Layout = LAYOUT) -> Buffer:
    """What the reader finds after threads that make these marks, one thread after another."""
    memory = bytearray(layout.header().ljust(layout.size, b"\0"))
    for special in threads:
        thread = Thread(memory, BASE, special)
        for text in (ptx.begin(BASE), *(ptx.mark(*mark) for mark in marks), ptx.end()):
            thread.run(text)
    return records.decode(bytes(memory), layout)


def _thread(lane: int = 0, **more: int) -> dict[str, int]:
    one = dict.fromkeys(("tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z"), 0)
    sizes = dict.fromkeys(("ntid.x", "ntid.y", "ntid.z", "nctaid.x", "nctaid.y", "nctaid.z"), 1)
    return {**one, **sizes, "laneid": lane, "smid": 5, "gridid": 2**33 + 9, "clock64": 100, "globaltimer": 7000} | {
        name.replace("_", "."): value for name, value in more.items()
    }


def test_what_a_warp_records_is_what_the_reader_reads() -> None:
    place = {"tid_x": 64, "tid_y": 1, "ntid_x": 128, "ntid_y": 2, "ctaid_x": 2, "ctaid_y": 3, "nctaid_x": 10}
    found = _run([_thread(clock64=2**40, **place)], [(0, False), (0, True), (2, False), (2, True)], Layout(300, 4))

    events = [(2**40 + 1, 0, False), (2**40 + 2, 0, True), (2**40 + 3, 2, False), (2**40 + 4, 2, True)]
    expected = Recorded(
        *(9, 5, 32, 6, 2**40, 2**40 + 5, 7000, 7001), tuple(Event(*event) for event in events), wanted=4
    )
    assert Buffer((expected,), claimed=1) == found


def test_only_the_first_lane_records() -> None:
    assert Buffer() == _run([_thread(lane=lane) for lane in (1, 31)], [(0, False), (0, True)])


def test_warps_beyond_the_last_track_are_counted() -> None:
    found = _run([_thread(smid=number, ctaid_x=number, nctaid_x=5) for number in range(5)], [(0, False)])
    assert ([0, 1, 2], 5, 2) == ([track.sm for track in found.tracks], found.claimed, found.dropped_tracks)


def test_a_warp_has_the_track_of_its_place_and_another_launchs_one_from_the_end() -> None:
    places = [{"tid_x": 32 * warp, "ntid_x": 60, "ctaid_x": block} for block in range(2) for warp in range(2)]
    threads = [_thread(gridid=launch, nctaid_x=2, **each) for launch in range(2) for each in places]
    found = _run(threads, [(0, False)], Layout(9, 2))
    expected = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0)]
    assert expected == [(track.launch, track.block, track.warp) for track in found.tracks]
    assert (8, 0) == (found.claimed, found.dropped_tracks)


def test_warps_that_end_early_leave_their_places_to_others() -> None:
    """As many tracks as warps that record, whose places in the launch reach further."""
    threads = [_thread(ctaid_x=block, nctaid_x=9) for block in (8, 5, 3, 0)]
    found = _run(threads, [(0, False)], Layout(4, 2))
    assert ([0, 3, 5, 8], 4) == (sorted(track.block for track in found.tracks), found.claimed)


def test_launches_that_do_not_fit_together_lose_the_rest() -> None:
    threads = [_thread(gridid=launch, ctaid_x=block, nctaid_x=4) for launch in range(3) for block in range(4)]
    found = _run(threads, [(0, False)], Layout(6, 2))
    assert (6, 12, 6) == (len(found.tracks), found.claimed, found.dropped_tracks)


def test_events_beyond_a_tracks_room_are_counted() -> None:
    (found,) = _run([_thread()], [(0, False), (0, True)] * 5).tracks
    assert (4, 10, 6) == (len(found.events), found.wanted, found.dropped)


@given(st.lists(st.tuples(st.integers(0, 63), st.booleans()), max_size=8), st.integers(1, 4), st.integers(1, 8))
def test_whatever_is_marked_is_read_without_a_fault(marks: list[tuple[int, bool]], tracks: int, events: int) -> None:
    found = _run([_thread(clock64=1000 * number + 1) for number in range(3)], marks, records.Layout(tracks, events))
    assert () == found.notes
    for track in found.tracks:
        assert marks[:events] == [(event.region, event.is_end) for event in track.events]
