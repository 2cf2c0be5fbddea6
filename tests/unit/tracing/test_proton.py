"""Proton's scratch memory as tracks; Proton's own parser reads the same of it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.tracing import proton, records, writing
from kernelci.tracing.records import END, Event, Layout, Recorded

from . import scratch
from .scratch import Mark

REGIONS = {0: 0, 1: 1}
NAMES = ("load", "compute")


def _marks(at: int) -> list[Mark]:
    return [(0, False, at), (0, True, at + 1000), (1, False, at + 1010), (1, True, at + 3000)]


def _read(*blocks: bytes, warps: int = 1, events: int = 4, most: int = 100) -> list[Recorded]:
    return proton.read(b"".join(blocks), warps, scratch.stride(warps, events), REGIONS, most=most)


def _ends(found: list[Recorded]) -> list[tuple[int, int, int, int, int]]:
    return [(one.block, one.warp, one.begin, one.end, one.wanted) for one in found]


def test_a_warp_is_a_track_of_its_block() -> None:
    (found,) = _read(scratch.block(3, 7, 1000, 5000, [_marks(2**40)], 4))

    events = tuple(Event(2**40 + at, region, end) for at, region, end in
                   ((0, 0, False), (1000, 0, True), (1010, 1, False), (3000, 1, True)))  # fmt: skip
    assert Recorded(0, 7, 3, 0, 2**40, 2**40 + 3000, 1000, 5000, events, 4) == found


def test_a_block_begins_with_its_first_event_and_ends_with_its_last() -> None:
    found = _read(scratch.block(0, 7, 1000, 5000, [_marks(500), _marks(900), []], 4), warps=3)
    assert [(0, 0, 500, 3900, 4), (0, 1, 500, 3900, 4), (0, 2, 500, 3900, 0)] == _ends(found)


def test_the_earliest_blocks_come_first() -> None:
    blocks = [scratch.block(number, number, 5000 - number, 9000, [_marks(500)], 4) for number in range(3)]
    assert [2, 1, 0] == [one.block for one in _read(*blocks)]
    assert [2] == [one.block for one in _read(*blocks, most=1)]
    assert 3 == proton.count(b"".join(blocks), 1, scratch.stride(1, 4))


def test_a_ring_that_was_too_small_keeps_the_last_events() -> None:
    marks = [*_marks(100), *_marks(5000), (0, False, 9000)]
    (found,) = _read(scratch.block(0, 7, 1000, 5000, [marks], 4))

    assert [6000, 6010, 8000, 9000] == [event.clock for event in found.events]
    assert (6000, 9, 5) == (found.begin, found.wanted, found.dropped)


def test_a_clock_that_runs_over_goes_on() -> None:
    (found,) = _read(scratch.block(0, 7, 1000, 5000, [[(0, False, 2**43 - 10), (0, True, 30)]], 4))
    assert [2**43 - 10, 2**43 + 30] == [event.clock for event in found.events]


def test_scopes_without_a_region_are_left_out() -> None:
    (found,) = _read(scratch.block(0, 7, 1000, 5000, [[(9, False, 10), *_marks(100)[:2], (9, True, 2000)]], 4))
    assert ([100, 1100], 0) == ([event.clock for event in found.events], found.dropped)


@pytest.mark.parametrize(
    "block",
    [
        scratch.block(0, 7, 1000, 5000, [_marks(1)], 4, preamble=0),
        scratch.block(0, 5000, 1000, 5000, [_marks(1)], 4),
        scratch.block(0, 7, 5000, 1000, [_marks(1)], 4),
        scratch.block(0, 7, 1000, 5000, [[]], 4),
        b"",
    ],
    ids=["no preamble", "no such multiprocessor", "never ended", "nothing recorded", "no memory"],
)
def test_what_is_no_block_is_left_out(block: bytes) -> None:
    good = scratch.block(1, 2, 100, 200, [_marks(50)], 4)
    assert [1] == [one.block for one in _read(block, good)]


@pytest.mark.parametrize(("warps", "stride"), [(0, 128), (65, 4096), (4, 40), (1, 4096)])
def test_sizes_that_can_not_be(warps: int, stride: int) -> None:
    assert [] == proton.read(b"\0" * 256, warps, stride, REGIONS)


@given(st.data(), st.integers(1, 8), st.sampled_from([0, 1, 4, 16]))
def test_any_bytes_give_tracks_that_make_sense(data: Any, warps: int, events: int) -> None:
    size = scratch.stride(warps, events)
    memory = bytearray(data.draw(st.binary(max_size=3 * size)))
    for at in range(0, len(memory) - 4, size):
        memory[at : at + 4] = scratch.PREAMBLE.to_bytes(4, "little")

    for one in proton.read(bytes(memory), warps, size, REGIONS):
        assert one.begin <= one.end
        assert one.timer_begin <= one.timer_end
        assert len(one.events) <= one.wanted
        clocks = [event.clock for event in one.events]
        assert clocks == sorted(clocks)


MARKS = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(1, 10**6)), max_size=12)


@given(st.lists(MARKS, min_size=1, max_size=4), st.sampled_from([4, 8]), st.integers(1, 6), st.integers(1, 12))
def test_what_is_written_on_is_what_the_reader_reads(
    warps: list[list[Mark]], events: int, tracks: int, room: int
) -> None:
    found = _read(scratch.block(0, 7, 1000, 5000, [sorted(each, key=lambda mark: mark[2]) for each in warps], events),
                  warps=len(warps), events=events)  # fmt: skip
    layout = Layout(tracks, room)
    data = (layout.header() + writing.tracks(found, 0, layout)).ljust(layout.size, b"\0")

    decoded = records.decode(data, layout)
    assert () == decoded.notes
    assert [one.events[:room] for one in found[:tracks]] == [one.events for one in decoded.tracks]
    assert [one.wanted for one in found[:tracks]] == [one.wanted for one in decoded.tracks]


def test_tracks_are_written_on_behind_others() -> None:
    layout = Layout(3, 1)
    one = Recorded(1, 7, 3, 2, 10, 20, 100, 200, (Event(15, 4, True),), 5)

    first, second = layout.stride, 2 * layout.stride
    written = writing.tracks([one, one, one], 1, layout)
    assert 2 * layout.stride == len(written)
    assert (15).to_bytes(8, "little") + (4 | END).to_bytes(4, "little") + bytes([1, 0, 0, 0]) == written[64:first]
    assert bytes([2, 0, 0, 0]) == written[second - 4 : second]


@pytest.mark.parametrize(("wanted", "ring"), [(0, 4), (4, 4), (5, 8), (64, 64), (65, 128)])
def test_a_ring_is_a_power_of_two(wanted: int, ring: int) -> None:
    assert ring == proton.ring_events(wanted)


def test_regions_are_found_by_name_and_others_follow() -> None:
    scopes = [(0, "epilogue"), (1, "load"), (2, "mine"), (3, "epilogue")]
    assert {0: 1, 1: 0, 2: 2, 3: 1} == proton.numbers(scopes, ("load", "epilogue"))


def test_more_regions_than_there_are_numbers() -> None:
    found = proton.numbers([(number, f"r{number}") for number in range(100)], ())
    assert list(range(records.REGIONS)) == list(found.values())


def test_a_header_is_read_or_refused() -> None:
    layout = Layout(10, 20)
    assert (layout, 0) == writing.opened(layout.header())
    with pytest.raises(ValueError, match="no trace buffer"):
        writing.opened(b"\0" * 64)


# What Proton's library asks of a driver, in memory of the host.
DRIVER = """
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned f) { return 0; }
int cuMemAllocHost_v2(void** p, size_t n) { return !(*p = malloc(n)); }
int cuMemHostAlloc(void** p, size_t n, unsigned f) { return !(*p = malloc(n)); }
int cuMemFreeHost(void* p) { free(p); return 0; }
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t n, void* s) { memcpy(to, (void*)from, n); return 0; }
int cuStreamCreateWithPriority(void** s, unsigned f, int p) { *s = (void*)1; return 0; }
int cuStreamSynchronize(void* s) { return 0; }
int cuStreamDestroy_v2(void* s) { return 0; }
int cuCtxGetStreamPriorityRange(int* a, int* b) { *a = *b = 0; return 0; }
int cuCtxGetCurrent(void** c) { *c = (void*)1; return 0; }
int cuCtxGetDevice(int* d) { *d = 0; return 0; }
int cuCtxSynchronize(void) { return 0; }
"""
PARSED = """
import ctypes, json, os, sys
from triton._C.libproton import proton
folder, size, warps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = open(os.path.join(folder, "scratch"), "rb").read()
facts = {"target": {"backend": "cuda", "arch": 90, "warp_size": 32}, "name": "k", "num_warps": warps,
         "profile_scratch_size": size, "profile_scratch_align": 128}
facts_path = os.path.join(folder, "k.json")
json.dump(facts, open(facts_path, "w"))
session = proton.start(os.path.join(folder, "out"), "shadow", "trace", "instrumentation", "cuda")
proton.init_function_metadata(77, "k", [(0, "load"), (1, "compute")], [], facts_path)
memory = ctypes.create_string_buffer(data, len(data))
proton.enter_instrumented_op(0, 77, ctypes.addressof(memory), len(data))
proton.exit_instrumented_op(0, 77, ctypes.addressof(memory), len(data))
proton.finalize(session, "")
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_proton_itself_reads_the_same(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    (tmp_path / "driver.c").write_text(DRIVER)
    command = ["cc", "-shared", "-fPIC", "-w", "-o", str(tmp_path / "libcuda.so.1"), str(tmp_path / "driver.c")]
    subprocess.run(command, check=True, timeout=60)
    warps = [_marks(2**40 + 13 * warp) for warp in range(4)]
    blocks = [scratch.block(number, 7 + number, 1000 + number, 5000, warps, 8) for number in range(2)]
    (tmp_path / "scratch").write_bytes(b"".join(blocks))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    size = scratch.stride(4, 8)
    done = subprocess.run(
        [sys.executable, "-c", PARSED, str(tmp_path), str(size), "4"],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (tmp_path / "out.chrome_trace").exists(), done.stderr

    theirs = set()
    for event in json.loads((tmp_path / "out.chrome_trace").read_text())["traceEvents"]:
        theirs.add((event["pid"], event["tid"].partition(" (")[0], event["name"], round(event["dur"] * 1000)))
    ours = set()
    for one in proton.read(b"".join(blocks), 4, size, REGIONS):
        for begin, end in zip(one.events[::2], one.events[1::2], strict=True):
            where = (f"k Core{one.sm} CTA{one.block}", f"warp {one.warp}")
            ours.add((*where, NAMES[begin.region], end.clock - begin.clock))
    assert theirs == ours
