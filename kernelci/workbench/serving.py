"""What the calls of a series return, left where it was allocated: in the arena (the untrusted side).

An entry that returns its outputs gets its GPU memory from a region of the arena that the referee has reserved, so that
nothing need be copied to where the referee reads. Every series serves from the region's beginning: of all series of a
process only one runs at a time, and what an earlier one left there has been checked by then.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from kernelci.workbench.arena import Mapped
from kernelci.workbench.bound import is_plain, named
from kernelci.workbench.protocol import Spots, TensorPlace, Workspace

SETTLING_RUNS = 2  # without a graph: the first finds how much memory there must be, the second where each result lies
SAMPLES = 16
PIECE_BYTES = 512
_GIVE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
# Pools live as long as the process: torch ends it where a pool goes before a graph that was captured in it.
_POOLS: list["Pool"] = []
# Whose results are held. One series' at most: all share one region, and torch's allocator finds what a tensor holds by
# its address alone, so that two at the same one end the process when they are given up.
_HOLDING: list["Results"] = []


class Elsewhere(Exception):
    """The results can't be read where they lie; the text says why. They must be copied."""


class Pool:
    """Serves torch's allocations of a thread or a capture from [address, address + size). Raises Elsewhere."""

    def __init__(self, address: int, size: int) -> None:
        self._next, self._end = address, address + size
        self._give, self._take = _GIVE(self._given), _TAKE(lambda pointer, size, device, stream: None)
        pointers = (ctypes.cast(each, ctypes.c_void_p).value for each in (self._give, self._take))
        _POOLS.append(self)
        try:
            self._pool = torch.cuda.MemPool(torch._C._cuda_customAllocator(*pointers))
        except Exception as error:
            text = f"torch {torch.__version__} takes no allocator: {type(error).__name__}: {error}"
            raise Elsewhere(text[:300]) from error

    def _given(self, size: int, device: int, stream: int | None) -> int | None:
        """The next piece; None: full. torch asks for whole segments and divides them itself."""
        begin, self._next = self._next, self._next + -(-size // PIECE_BYTES) * PIECE_BYTES
        if self._next <= self._end:
            return begin
        self._next = begin
        return None

    @property
    def id(self) -> Any:
        """What torch.cuda.graph takes for its pool."""
        return self._pool.id

    def serving(self) -> Any:
        """A context in which allocations of this thread come from here."""
        return torch.cuda.use_mem_pool(self._pool)


class Results:
    """A series' calls whose results are kept until the next run, so that all of them are there at once."""

    def __init__(
        self,
        calls: Sequence[Callable[[], Any]],
        outputs: Mapping[str, TensorPlace],
        workspace: Workspace,
        arena: Mapped,
    ) -> None:
        self._calls = tuple(calls)
        self._outputs = outputs
        self._arena = arena
        self._workspace = workspace
        self._kept: list[Any] = []
        self._spots: dict[str, Spots] = {}

    def pool(self) -> Pool:
        """Memory for them. Raises Elsewhere."""
        self._hold()
        return Pool(self._arena.address + self._workspace.begin, self._workspace.size)

    def first(self) -> None:
        """Make one call, and drop what it returns."""
        self._calls[0]()

    def run(self, after: Callable[[], None] | None = None) -> None:
        """Make all calls, and do something after each."""
        self._hold()
        for call in self._calls:
            self._kept.append(call())
            if after is not None:
                after()

    def _hold(self) -> None:
        """Give up the results of the series before, and of the last run."""
        for one in (*_HOLDING, self):
            one._kept.clear()
        _HOLDING[:] = [self]

    def settle(self) -> dict[str, Spots]:
        """Where they lie now, and will lie after each run of the same kind. Raises Elsewhere."""
        self._spots = {name: self._found(name) for name in self._outputs}
        return self._spots

    def moved(self) -> dict[str, Spots]:
        """Where they lie, if that is no longer what `settle` said; a look at a few, since the clock is running."""
        count = len(self._kept)
        for index in range(0, count, -(-count // SAMPLES)):
            now = named(self._kept[index], self._outputs)
            if any(self._offset(now[name]) != spots.offsets[index] for name, spots in self._spots.items()):
                return self.settle()
        return {}

    def _found(self, name: str) -> Spots:
        place = self._outputs[name]
        found: list[Any] = [named(each, self._outputs).get(name) for each in self._kept]
        if not all(is_plain(each) for each in found):
            raise Elsewhere("a result is no plain tensor")
        kinds = {(tuple(each.shape), each.dtype, each.stride()) for each in found}
        shape, dtype, strides = next(iter(kinds))
        known = str(dtype).removeprefix("torch.")
        if len(kinds) > 1 or (shape, known) != (place.shape, place.dtype):
            raise Elsewhere("results differ in shape, dtype or strides")
        offsets = tuple(self._offset(each) for each in found)
        begin, end = self._workspace.begin, self._workspace.begin + self._workspace.size
        if len(set(offsets)) < len(offsets) or not all(begin <= offset < end for offset in offsets):
            raise Elsewhere("a result does not lie in memory of its own that its call has allocated")
        return Spots(offsets, shape, strides, known)

    def _offset(self, tensor: Any) -> int:
        return int(tensor.data_ptr()) - self._arena.address
