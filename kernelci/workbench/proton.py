"""Triton's own instrumentation at work in a candidate: what Proton's scopes record goes into the trace buffer.

Proton's compiler passes are used, and neither its profiler nor its files: a launch's scratch memory is read back after
each launch (kernelci.tracing.proton) and written on as tracks like those of all other DSLs.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol
from unittest import mock

from kernelci.tracing import proton, writing
from kernelci.tracing.prelude import Tracing
from kernelci.tracing.records import HEADER_BYTES, Layout

SCRATCH_BYTES = 2**30  # of one launch; positions must fit in 31 bits
LEAST_EVENTS = 8


class Memory(Protocol):
    """Memory by address."""

    def read(self, address: int, size: int) -> bytes:
        """The bytes there."""

    def write(self, address: int, data: bytes) -> None:
        """Put bytes there."""

    def zeros(self, size: int) -> Any:
        """A tensor of bytes, for a launch."""

    def settled(self, tensor: Any) -> bytes:
        """What such a tensor holds when the device has done all of its work."""


class TooMuch(Exception):
    """A launch's scratch memory would be too large."""


class Scopes:
    """Instruments the launches of a process. `tracing`: where the buffer is, and the numbers of regions."""

    def __init__(self, tracing: Tracing, memory: Memory) -> None:
        self._tracing = tracing
        self._memory = memory
        self._launches = 0
        self._scratch: Any = None
        self._rests = False

    def running(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A JITFunction.run that records."""

        def recorded(function: Any, *args: Any, **kwargs: Any) -> Any:
            if self._rests or kwargs.get("warmup"):
                return run(function, *args, **kwargs)
            events = proton.ring_events(self._layout()[0].events)
            while True:
                try:
                    with instrumented(events * proton.EVENT_BYTES * kwargs.get("num_warps", 4), self._allocated):
                        kernel = run(function, *args, **kwargs)
                    break
                except TooMuch:
                    if events <= LEAST_EVENTS:
                        raise
                    events //= 2
            self._collect(kernel)
            return kernel

        return recorded

    def resting(self, measure: Callable[..., Any]) -> Callable[..., Any]:
        """An autotuner's method that measures, whose launches are as they always are."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            self._rests = True
            try:
                return measure(*args, **kwargs)
            finally:
                self._rests = False

        return measured

    def _layout(self) -> tuple[Layout, int]:
        return writing.opened(self._memory.read(self._tracing.address, HEADER_BYTES))

    def _allocated(self, size: int, alignment: int, stream: int | None) -> Any:
        """Scratch memory for a launch, as Triton asks for it."""
        if size > SCRATCH_BYTES:
            raise TooMuch(f"to trace this launch takes {size} bytes of scratch memory, and {SCRATCH_BYTES} are allowed")
        self._scratch = self._memory.zeros(size)
        return self._scratch

    def _collect(self, kernel: Any) -> None:
        scratch, self._scratch = self._scratch, None
        if scratch is not None:  # it has scopes, and a block
            self.collect(kernel, self._memory.settled(scratch))

    def collect(self, kernel: Any, data: bytes) -> None:
        """Write on what a launch of this compiled kernel left in its scratch memory."""
        layout, claimed = self._layout()
        warps, stride = kernel.metadata.num_warps, kernel.metadata.profile_scratch_size
        regions = proton.numbers(scopes(kernel.asm["ttgir"]), self._tracing.regions)
        room = max(0, layout.tracks - claimed)
        found = proton.read(data, warps, stride, regions, self._launches, room)
        start = self._tracing.address
        if room:
            self._memory.write(start + writing.offset(claimed, layout), writing.tracks(found, claimed, layout))
        count = claimed + max(len(found), proton.count(data, warps, stride))
        self._memory.write(start + writing.CLAIMED_AT, count.to_bytes(4, "little"))
        self._launches += 1


@contextlib.contextmanager
def traced(tracing: Tracing, memory: Memory | None = None) -> Iterator[Scopes]:
    """Under it each launch is instrumented and leaves its tracks in the trace buffer."""
    import triton.profiler.language as language
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    language.enable_semantic("triton")  # by default Proton takes scopes in Gluon alone
    found = Scopes(tracing, memory or DeviceMemory())
    with (
        mock.patch.object(JITFunction, "run", found.running(JITFunction.run)),
        mock.patch.object(Autotuner, "_bench", found.resting(Autotuner._bench)),
    ):
        yield found


@contextlib.contextmanager
def instrumented(size: int, allocator: Callable[[int, int, int | None], Any]) -> Iterator[None]:
    """Under it Triton compiles scopes to records, `size` bytes of rings for a block, in memory from `allocator`."""
    from triton.profiler.hooks import InstrumentationHook
    from triton.runtime._allocation import set_profile_allocator

    hook = InstrumentationHook(f"default:buffer_type=global:buffer_size={size}")
    hook.activate()
    set_profile_allocator(allocator)
    try:
        yield
    finally:
        hook.deactivate()


def scopes(ttgir: str) -> Sequence[tuple[int, str]]:
    """Number and name of each scope of a kernel, as Triton numbers them."""
    from triton._C.libtriton import ir, nvidia
    from triton._C.libtriton import proton as dialect

    context = ir.context()
    for part in (ir, nvidia, dialect):
        part.load_dialects(context)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ttgir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ttgir)
        module = ir.parse_mlir_module(path, context)
    module.context = context  # must live as long
    return [(int(number), str(name)) for number, name in dialect.get_scope_id_names(module)]


class DeviceMemory:
    """GPU memory, through torch."""

    def read(self, address: int, size: int) -> bytes:
        """See Memory."""
        found: bytes = _tensor(address, size).cpu().numpy().tobytes()
        return found

    def write(self, address: int, data: bytes) -> None:
        """See Memory."""
        import torch

        if data:
            _tensor(address, len(data)).copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))

    def zeros(self, size: int) -> Any:
        """See Memory."""
        import torch

        return torch.zeros(size, dtype=torch.uint8, device="cuda")

    def settled(self, tensor: Any) -> bytes:
        """See Memory."""
        import torch

        torch.cuda.synchronize()
        found: bytes = tensor.cpu().numpy().tobytes()
        return found


class _Foreign:
    """Memory of somebody else's, as torch takes it."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3, "strides": None, "stream": None
        }  # fmt: skip


def _tensor(address: int, size: int) -> Any:
    import torch

    return torch.as_tensor(_Foreign(address, size), device="cuda")


def silence() -> None:
    """Let scopes be nothing where Triton interprets kernels: Proton's functions know no interpreter."""
    import triton.profiler.language as language

    def nothing(name: str, _semantic: object = None) -> None:
        return None

    language.enter_scope = language.exit_scope = nothing
