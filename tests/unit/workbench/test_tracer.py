"""A traced call through a real candidate on the CPU: its kernel writes to the buffer what a GPU's warps would."""

import textwrap
from collections.abc import Callable, Iterator

import msgspec
import pytest
import torch

from kernelci import backends
from kernelci.errors import Stop
from kernelci.reference import Case, TensorSpec
from kernelci.tracing.prelude import TraceAt
from kernelci.tracing.regions import Trace
from kernelci.workbench import tracer
from kernelci.workbench.arena import Arena
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.oracle import Truth
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Call, Done, Source
from kernelci.workbench.session import Limits, Session

DRAWN = Drawn(Case("bench", ()), {"x": torch.ones(4)}, {"y": TensorSpec((4,), "float32")}, Truth({}, {}))
# What kernelci_trace.cuh does, in ctypes; `warps` of `events` each, a region of 10 cycles in every 20.
KERNEL = """
    import ctypes, os, struct
    import numpy as np
    WARPS, EVENTS = {warps}, {events}
    def memory(begin, size):
        address = int(os.environ["KERNELCI_TRACE"], 16) + begin
        return (ctypes.c_char * size).from_address(address)
    def f(x, y):
        y.copy_(x)
        _, _, tracks, capacity, claimed = struct.unpack_from("<5I", memory(0, 64))
        for warp in range(WARPS):
            number, claimed = claimed, claimed + 1
            if number >= tracks:
                continue
            count, begin = EVENTS, 10**9 + 7 * warp
            at = 64 + number * (64 + 16 * capacity)
            end = begin + 10 * count + 10
            head = (begin, end, 5000, 5000 + end - begin, 3, warp % 4, warp // 8, warp % 8, count, 2, 0)
            memory(at, 64)[:] = struct.pack("<4Q6IQ", *head)
            for event in range(min(count, capacity)):
                mark = event % 2 << 31 | event // 2 % 2
                memory(at + 64 + 16 * event, 16)[:] = struct.pack("<QII", begin + 10 * event + 10, mark, number)
        memory(0, 64)[16:20] = struct.pack("<I", claimed)
        {more}
"""


@pytest.fixture(scope="module")
def cuda_zygote() -> Iterator[Zygote]:
    """The untrusted side of CUDA C++, which needs no GPU to start."""
    started = Zygote("interpret", ("cuda",), backends.get("cuda").environment)
    assert started.wait_ready() == {}
    yield started
    started.close()


@pytest.fixture
def traced(cuda_zygote: Zygote) -> Callable[..., Trace]:
    """The trace of a kernel that has so many warps of so many events, and does something `more`."""

    def make(
        warps: int = 4, events: int = 4, more: str = "", size: int = 2**16, clock_hz: float | None = None
    ) -> Trace:
        text = textwrap.dedent(KERNEL.format(warps=warps, events=events, more=more))
        source = Source("ours", "kernel.py", {"kernel.py": text.encode()})

        def opened(arena: Arena, at: TraceAt) -> Session:
            return Session(cuda_zygote, source, "f", "cuda", "cpu", Limits(60, 60, 2**31), arena=arena, trace=at)

        return tracer.trace(opened, DRAWN, ("load", "compute"), "cpu", size=size, sm_clock_hz=lambda: clock_hz)

    return make


def test_a_call_leaves_a_track_for_each_warp(traced: Callable[..., Trace]) -> None:
    found = traced(warps=6)
    assert [(warp % 4, 0, warp) for warp in range(6)] == [(track.sm, track.block, track.warp) for track in found.tracks]
    assert ["load", "compute"] == [region.name for region in found.tracks[0].regions]


def test_a_buffer_that_was_too_small_is_laid_out_anew(traced: Callable[..., Trace]) -> None:
    found = traced(warps=3, events=500)  # the first layout has 64 events a track
    assert [250] * 3 == [len(track.regions) for track in found.tracks]
    assert not [note for note in found.notes if "room" in note]


def test_what_never_fits_is_told_and_the_rest_kept(traced: Callable[..., Trace]) -> None:
    found = traced(warps=200, events=100)
    assert 60 == len(found.tracks)
    assert any("140 of 200 warps found no room" in note for note in found.notes)
    assert any("events of 60 warps found no room" in note for note in found.notes)


@pytest.mark.parametrize(
    ("fault", "note"),
    [
        ("memory(0, 4)[:] = b'none'", "the buffer's header was overwritten"),
        ("memory(64 + 52, 4)[:] = b'\\x63\\0\\0\\0'", "track 0: state 99"),
        ("memory(64, 2**16 - 256)[:] = os.urandom(2**16 - 256)", "track 0: "),
    ],
)
def test_a_candidate_can_write_anything_there(traced: Callable[..., Trace], fault: str, note: str) -> None:
    assert any(note in each for each in traced(more=fault).notes)


@pytest.mark.parametrize(("clock_hz", "length"), [(2e9, 5.0), (None, 10.0)])
def test_a_call_too_short_to_tell_the_clock_has_that_of_nvml(
    traced: Callable[..., Trace], clock_hz: float | None, length: float
) -> None:
    region = traced(warps=1, clock_hz=clock_hz).tracks[0].regions[0]
    assert pytest.approx(length) == region.end_ns - region.begin_ns


def test_a_kernel_that_writes_nothing_has_no_tracks(traced: Callable[..., Trace]) -> None:
    assert Trace(notes=()) == msgspec.structs.replace(traced(warps=0), step_ns=0.0, cycles_per_ns=0.0)


def test_a_call_that_raises_is_the_kernels_fault(traced: Callable[..., Trace]) -> None:
    with pytest.raises(Stop, match="enough"):
        traced(more="raise ValueError('enough')")


def test_the_first_call_has_time_to_compile_and_no_other(cuda_zygote: Zygote) -> None:
    deadlines = []

    class Noting(Session):
        def call(self, message: Call) -> Done:
            deadlines.append(self.limits.call_s)
            return super().call(message)

    source = Source("ours", "kernel.py", {"kernel.py": b"def f(x, y): pass"})

    def opened(arena: Arena, at: TraceAt) -> Session:
        return Noting(cuda_zygote, source, "f", "cuda", "cpu", Limits(60, 60, 2**31), arena=arena, trace=at)

    tracer.trace(opened, DRAWN, (), "cpu", compile_s=30, size=2**16)
    assert [90, 60] == deadlines
