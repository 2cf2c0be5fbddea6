"""kernelci_trace.cuh run by warps on the CPU: what it writes is what the reader reads."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelci.tracing import prelude
from kernelci.tracing.prelude import Tracing
from kernelci.tracing.records import Buffer, Event, Layout, decode

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
_READ = re.compile(r'asm volatile\("mov\.u\d+ %0, %%(\w+);" : "=\w"\(([\w>-]+)\)(?:::"memory")?\);')
_STORE = re.compile(r'asm volatile\("st\.global\.v4.*?: "memory"\);', re.DOTALL)
# A launch of 2 × 3 blocks of 64 threads on 2 multiprocessors; registers that a warp can ask for are variables.
HOST = """
#include <cstdio>
#include <vector>
#define __device__
#define __forceinline__ inline
struct Triple { unsigned x, y, z; };
Triple threadIdx, blockIdx, blockDim{64, 1, 1}, gridDim{2, 3, 1};
unsigned host_laneid() { return threadIdx.x % 32; }
unsigned host_smid() { return (blockIdx.x + 2 * blockIdx.y) % 2; }
unsigned long long host_gridid() { return (1ull << 32) + 7; }
unsigned long long ticks = (1ull << 40) - 20;  // the lower half of the clock runs over meanwhile
unsigned long long host_clock64() { return ticks += 10; }
unsigned long long host_globaltimer() { return ticks / 64 * 32; }
unsigned atomicAdd(unsigned* at, unsigned more) { unsigned old = *at; *at += more; return old; }
unsigned atomicCAS(unsigned* at, unsigned old, unsigned next) { return *at == old ? (*at = next, old) : *at; }
std::vector<unsigned char> buffer;
"""
LAUNCH = """
void kernel() {
    KERNELCI_TRACE_KERNEL();
    if (blockIdx.y == 2) return;  // these blocks do nothing
    for (int i = 0; i < (blockIdx.x ? 2 : 1); i++) {
        KERNELCI_BEGIN(load);
        KERNELCI_END_load();
    }
    KERNELCI_BEGIN(compute);
    KERNELCI_END(compute);
}
int main(int, char** names) {
    FILE* file = fopen(names[1], "rb+");
    fseek(file, 0, SEEK_END);
    buffer.resize(ftell(file));
    rewind(file);
    if (fread(buffer.data(), 1, buffer.size(), file) != buffer.size()) return 1;
    for (int launch = 0; launch < (names[2] ? 2 : 1); launch++)
      for (blockIdx.y = 0; blockIdx.y < 3; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < 2; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < 64; threadIdx.x++) kernel();
    rewind(file);
    return fwrite(buffer.data(), 1, buffer.size(), file) != buffer.size();
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launch as a program that works on a buffer in a file."""
    folder = tmp_path_factory.mktemp("header")
    text, reads = _READ.subn(r"\2 = host_\1();", prelude.definitions(Tracing(0, ("load", "compute"))))
    text, stores = _STORE.subn("*record = {now, region, number};", text)
    assert (5, 1) == (reads, stores)
    text = text.replace("#define KERNELCI_TRACE 0x0ull", "#define KERNELCI_TRACE ((unsigned long long)buffer.data())")
    (folder / "launch.cpp").write_text(HOST + text + LAUNCH)
    command = ["g++", "-std=c++17", "-fsanitize=undefined", "-o", str(folder / "launch"), str(folder / "launch.cpp")]
    subprocess.run(command, check=True, timeout=120)
    return folder / "launch"


def launched(program: Path, folder: Path, layout: Layout, *more: str) -> Buffer:
    file = folder / "buffer"
    file.write_bytes(layout.header().ljust(layout.size, b"\0"))
    done = subprocess.run([program, file, *more], capture_output=True, text=True, check=True, timeout=60)
    assert "" == done.stderr
    return decode(file.read_bytes(), layout)


def test_each_warp_has_a_track_with_its_place(program: Path, tmp_path: Path) -> None:
    found = launched(program, tmp_path, Layout(20, 8))
    assert () == found.notes
    assert (12, 7) == (found.claimed, found.tracks[0].launch)
    assert [(block % 2, block, warp) for block in range(6) for warp in range(2)] == [
        (track.sm, track.block, track.warp) for track in found.tracks
    ]


def test_marks_are_the_tracks_events(program: Path, tmp_path: Path) -> None:
    found = launched(program, tmp_path, Layout(20, 8))
    load, compute = ((0, False), (0, True)), ((1, False), (1, True))
    expected = [(*load, *compute)] * 2 + [(*load, *load, *compute)] * 2
    assert [*expected, *expected, *[()] * 4] == [
        tuple((event.region, event.is_end) for event in track.events) for track in found.tracks
    ]


def test_clocks_are_whole_and_a_track_reaches_around_its_events(program: Path, tmp_path: Path) -> None:
    track = launched(program, tmp_path, Layout(20, 8)).tracks[0]
    start = (1 << 40) - 20
    assert (start + 10, start + 60) == (track.begin, track.end)
    assert Event(start + 20, 0, False) == track.events[0]
    assert track.is_ended


def test_a_second_launch_takes_tracks_from_the_end(program: Path, tmp_path: Path) -> None:
    found = launched(program, tmp_path, Layout(30, 8), "twice")
    places = [(block, warp) for block in range(6) for warp in range(2)]
    assert [*places, *places[::-1]] == [(track.block, track.warp) for track in found.tracks]
    assert ((), 24, 0) == (found.notes, found.claimed, found.dropped_tracks)


def test_what_does_not_fit_is_counted_and_nothing_is_written_beyond(program: Path, tmp_path: Path) -> None:
    found = launched(program, tmp_path, Layout(3, 4))
    assert (9, [0, 0, 2]) == (found.dropped_tracks, [track.dropped for track in found.tracks])
    assert () == found.notes
