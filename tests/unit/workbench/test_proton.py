"""Proton's scopes at work: which launches are instrumented, how much memory they get, and what is written on."""

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelci.reference import Case, TensorSpec
from kernelci.tracing import records
from kernelci.tracing.prelude import TraceAt, Tracing
from kernelci.tracing.records import Buffer, Layout
from kernelci.workbench import proton, tracer
from kernelci.workbench.arena import Arena
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.oracle import Truth
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Call, Done, Source
from kernelci.workbench.session import Limits, Session

from .conftest import MakeSession

pytest.importorskip("triton")
TTGIR = """
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32} {
  tt.func public @k() attributes {noinline = false} {
    proton.record start "mine"
    proton.record end "mine"
    proton.record start "load"
    proton.record end "load"
    tt.return
  }
}
"""
EVENTS, STRIDE = 4, 128


class Host:
    """A trace buffer and scratch memory where there is no GPU."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._content = ctypes.create_string_buffer(layout.header(), layout.size)
        self.address = ctypes.addressof(self._content)

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def write(self, address: int, data: bytes) -> None:
        assert self.address <= address <= address + len(data) <= self.address + self.layout.size
        ctypes.memmove(address, data, len(data))

    def zeros(self, size: int) -> torch.Tensor:
        return torch.zeros(size, dtype=torch.uint8)

    def settled(self, tensor: torch.Tensor) -> bytes:
        return tensor.numpy().tobytes()

    def decoded(self) -> Buffer:
        return records.decode(self._content.raw, self.layout)


class Launches:
    """Stands where Triton launches: asks for scratch memory, and writes there what `blocks` of one warp would."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.sizes: list[int] = []
        self.allocator: Callable[..., Any] | None = None
        self.kernel = SimpleNamespace(
            metadata=SimpleNamespace(num_warps=1, profile_scratch_size=STRIDE), asm={"ttgir": TTGIR}
        )

    @contextlib.contextmanager
    def instrumented(self, size: int, allocator: Callable[..., Any]) -> Iterator[None]:
        self.sizes.append(size)
        self.allocator = allocator
        yield
        self.allocator = None

    def run(self, function: object, *args: object, **kwargs: object) -> Any:
        if self.allocator is not None and self.blocks:
            scratch = self.allocator(self.blocks * max(STRIDE, self.sizes[-1]), 128, None)
            for block in range(self.blocks):
                scratch[block * STRIDE :][:STRIDE] = torch.frombuffer(bytearray(_block(block)), dtype=torch.uint8)
        return self.kernel


def _block(number: int) -> bytes:
    from tests.unit.tracing import scratch

    marks = [(0, False, 100), (0, True, 110), (1, False, 120), (1, True, 150)]
    return scratch.block(number, 7, 1000 + number, 2000, [marks], EVENTS)


@pytest.fixture
def host() -> Host:
    return Host(Layout(3, EVENTS))


@pytest.fixture
def launched(host: Host, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Launches, proton.Scopes]]:
    """Launch a kernel of so many blocks, `times` times."""

    def launch(blocks: int, times: int = 1, **options: object) -> tuple[Launches, proton.Scopes]:
        made = Launches(blocks)
        monkeypatch.setattr(proton, "instrumented", made.instrumented)
        scopes = proton.Scopes(Tracing(host.address, ("load", "store")), host)
        for _ in range(times):
            scopes.running(made.run)(None, **options)
        return made, scopes

    return launch


def test_scopes_are_numbered_as_triton_does_it() -> None:
    assert [(0, "mine"), (1, "load")] == sorted(proton.scopes(TTGIR))


def test_a_launch_leaves_tracks_with_the_cards_regions(host: Host, launched: Any) -> None:
    launched(blocks=2)

    found = host.decoded()
    assert ((), 2) == (found.notes, found.claimed)
    assert [0, 1] == [track.block for track in found.tracks]
    # "mine" is none of the card's regions and comes after them.
    assert [(100, 2, False), (110, 2, True), (120, 0, False), (150, 0, True)] == [
        (event.clock, event.region, event.is_end) for event in found.tracks[0].events
    ]


def test_the_next_launch_goes_behind_the_first(host: Host, launched: Any) -> None:
    launched(blocks=1, times=2)
    assert [(0, 0), (1, 0)] == [(track.launch, track.block) for track in host.decoded().tracks]


def test_tracks_without_room_are_counted(host: Host, launched: Any) -> None:
    launched(blocks=2, times=3)
    found = host.decoded()
    assert (3, 6, 3) == (len(found.tracks), found.claimed, found.dropped_tracks)


def test_rings_are_as_large_as_the_buffers_tracks(launched: Any) -> None:
    assert [EVENTS * 8 * 2] == launched(blocks=1, num_warps=2)[0].sizes
    assert [EVENTS * 8 * 4] == launched(blocks=1)[0].sizes


def test_a_launch_without_blocks_or_scopes_leaves_nothing(host: Host, launched: Any) -> None:
    launched(blocks=0)
    assert Buffer() == host.decoded()


def test_a_warm_up_is_not_instrumented(launched: Any) -> None:
    assert [] == launched(blocks=1, warmup=True)[0].sizes


def test_rings_shrink_until_a_launch_fits(launched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proton, "LEAST_EVENTS", 1)
    monkeypatch.setattr(proton, "SCRATCH_BYTES", STRIDE)
    assert [EVENTS * 64, EVENTS * 32] == launched(blocks=1, num_warps=8)[0].sizes


def test_a_launch_that_can_not_fit(launched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proton, "SCRATCH_BYTES", STRIDE)
    with pytest.raises(proton.TooMuch, match="256 bytes of scratch memory, and 128 are allowed"):
        launched(blocks=2)


def test_what_an_autotuner_measures_is_not_instrumented(launched: Any) -> None:
    made, scopes = launched(blocks=0)
    run = scopes.running(made.run)
    scopes.resting(lambda: run(None))()
    run(None)
    assert 2 == len(made.sizes)


def test_scopes_are_nothing_to_the_interpreter(session: MakeSession) -> None:
    kernel = """
        import torch, triton
        import triton.language as tl
        import triton.profiler.language as pl
        pl.enable_semantic("triton")
        @triton.jit
        def store(y):
            with pl.scope("store"):
                tl.store(y, 1.0)
            pl.enter_scope("more")
            pl.exit_scope("more")
        def f():
            y = torch.zeros(1)
            store[(1,)](y)
            assert y[0] == 1
    """
    assert Done() == session(kernel).call(Call({}, {}, {}))


def test_a_candidate_begins_to_trace_before_it_imports_the_kernel(zygote: Zygote) -> None:
    text = b"""
from triton.runtime.jit import JITFunction
assert JITFunction.run.__qualname__.startswith("Scopes.running")
def f(x, y):
    y.copy_(x)
"""
    drawn = Drawn(Case("bench", ()), {"x": torch.ones(4)}, {"y": TensorSpec((4,), "float32")}, Truth({}, {}))

    def opened(arena: Arena, at: TraceAt) -> Session:
        source = Source("ours", "kernel.py", {"kernel.py": text})
        return Session(zygote, source, "f", "triton", "cpu", Limits(60, 60, 2**31), arena=arena, trace=at)

    assert () == tracer.trace(opened, drawn, ("load",), "cpu", 2**16).tracks


def test_triton_is_as_before_afterwards(host: Host) -> None:
    from triton.runtime.jit import JITFunction

    before = JITFunction.run
    with proton.traced(Tracing(host.address, ()), host):
        assert JITFunction.run is not before
    assert JITFunction.run is before


def test_without_a_buffer_nothing_is_launched(launched: Any, host: Host) -> None:
    host.write(host.address, b"\0" * 4)
    with pytest.raises(ValueError, match="no trace buffer"):
        launched(blocks=1)
