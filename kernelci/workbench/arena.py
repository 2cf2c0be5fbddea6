"""The arena: memory that the referee owns and a candidate maps; one slot holds a call's inputs and outputs.

Around each tensor lie guard zones whose random contents only the referee keeps. On a GPU the arena is one plain
allocation shared by a CUDA IPC handle, so that mapping it reveals nothing else; without a GPU it is an anonymous file.
"""

import fcntl
import math
import mmap
import os
from collections.abc import Mapping
from typing import Any

import torch

from kernelci.reference import TensorSpec
from kernelci.workbench.protocol import TensorPlace

ALIGNMENT_BYTES = 256  # what CUDA's own allocator gives
GUARD_BYTES = 4096
# A whole number of the GPU's large pages: an allocation of another size is mapped in small ones by the process that
# opens its handle, and was read there at half the bandwidth (measured on an H200: 2.1 instead of 4.2 TB/s).
PAGE_BYTES = 2 * 2**20


class Plan:
    """Where the tensors of one slot lie, with guard zones around each; `layouts` names those that don't lie plainly.

    A tensor with an alias lies where that one lies. What a layout leaves between a tensor's elements is guard too.
    """

    def __init__(
        self, tensors: Mapping[str, TensorSpec], base: int = 0, layouts: Mapping[str, str] | None = None
    ) -> None:
        self.places: dict[str, TensorPlace] = {}
        self.guards: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
        end = base
        for name, spec in tensors.items():
            if spec.alias and spec.alias != name:
                self.places[name] = self.places[spec.alias]
                continue
            itemsize = dtype_of(spec.dtype).itemsize
            strides, shift = laid_out(spec.shape, (layouts or {}).get(name, ""))
            start = _aligned(end + GUARD_BYTES) + shift * itemsize
            size = reach(spec.shape, strides) * itemsize
            self.places[name] = TensorPlace(start, spec.shape, strides, spec.dtype)
            self.guards[name] = ((end, start), (start + size, start + size + GUARD_BYTES))
            end = start + size + GUARD_BYTES
        self.base = base
        self.end = _aligned(end)

    @property
    def bytes(self) -> int:
        """Size of the slot."""
        return self.end - self.base


class Arena:
    """The referee's side of the memory. `handle` and `fd` let a candidate map it."""

    def __init__(self, device: str, size: int, serves: bool = False) -> None:
        """`serves`: part of it serves what candidates allocate (kernelci.workbench.workspace)."""
        self.device = device
        self.serves = serves
        self.size = _aligned(size, ALIGNMENT_BYTES if device == "cpu" else PAGE_BYTES)
        self.handle = b""
        self._kept: torch.Tensor | None = None  # what the arena should hold, but for the outputs
        self.fd: int | None = None
        if device == "cpu":
            self.fd = os.memfd_create("kernelci-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self.fd, self.size)
            # A candidate that could shrink the file would make the referee's next read a SIGBUS.
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            self._memory = Mapped(device, self.size, self.fd, b"")
        else:
            from kernelci.workbench.cuda_memory import allocate

            self._pointer, self.handle = allocate(device, self.size)
            self._memory = Mapped(device, self.size, -1, b"", pointer=self._pointer)

    def view(self, place: TensorPlace) -> torch.Tensor:
        """The tensor at a place."""
        return self._memory.view(place)

    def expected(self, begin: int, end: int) -> torch.Tensor:
        """What [begin, end) should hold, as bytes out of the candidate's reach; `lay` copies to the arena what is
        written there. The first time all of it is random."""
        if self._kept is None:
            self._kept = torch.randint(256, (self.size,), dtype=torch.uint8, device=self.device)
            self.lay(0, self.size)
        return self._kept[begin:end]

    def lay(self, begin: int, end: int) -> None:
        """Make [begin, end) what it should be."""
        self.raw(begin, end).copy_(self.expected(begin, end))

    def touched(self) -> torch.Tensor:
        """Whether any byte is not as it should be: a boolean where the memory lies."""
        now, kept = self.raw(0, self.size), self.expected(0, self.size)
        if self.device == "cpu":
            return torch.tensor(not torch.equal(now, kept))
        return (now.view(torch.int64) != kept.view(torch.int64)).any()  # eight bytes each: the answers take memory too

    def forget(self) -> None:
        """Take the memory as it now is for how it should be."""
        self._kept = None

    def raw(self, begin: int, end: int) -> torch.Tensor:
        """The bytes [begin, end) as a uint8 tensor."""
        return self._memory.view(TensorPlace(begin, (end - begin,), (1,), "uint8"))

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
        if self.fd is not None:
            os.close(self.fd)
        else:
            from kernelci.workbench.cuda_memory import free

            free(self._pointer)


class Mapped:
    """An arena as one side maps it: views are tensors with a storage of their own, at offset 0."""

    def __init__(self, device: str, size: int, fd: int, handle: bytes, pointer: int = 0) -> None:
        self._device = device
        self._buffer: mmap.mmap | None = None
        self._opened = 0
        self._pointer = pointer
        if device == "cpu":
            self._buffer = mmap.mmap(fd, size)
        elif not pointer:
            from kernelci.workbench.cuda_memory import open_handle

            self._opened = self._pointer = open_handle(device, handle)

    @property
    def address(self) -> int:
        """Where it begins for this process, on a GPU; 0 on the CPU."""
        return self._pointer

    def view(self, place: TensorPlace) -> torch.Tensor:
        """The tensor at a place; an empty one has no memory."""
        dtype = dtype_of(place.dtype)
        count = reach(place.shape, place.strides)
        if count == 0:
            return torch.empty(place.shape, dtype=dtype, device=self._device)
        if self._buffer is not None:
            flat = torch.frombuffer(self._buffer, dtype=dtype, count=count, offset=place.offset)
        else:
            flat = torch.as_tensor(
                _CudaBytes(self._pointer + place.offset, count * dtype.itemsize), device=self._device
            ).view(dtype)
        return flat.as_strided(place.shape, place.strides)

    def blank(self, place: TensorPlace) -> torch.Tensor:
        """The tensor at a place where an output is to lie (kernelci.workbench.separate has it elsewhere)."""
        return self.view(place)

    def give_back(self) -> None:
        """Nothing: what was written to a view lies in the arena."""

    def close(self) -> None:
        """Unmap. Tensors that still look at it must not be used afterwards."""
        self._buffer = None  # unmapped when the last view is gone
        if self._opened:
            from kernelci.workbench.cuda_memory import close_handle

            close_handle(self._opened)


class _CudaBytes:
    """GPU memory at an address, by the protocol that torch.as_tensor takes without a copy."""

    def __init__(self, pointer: int, size: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (pointer, False),
            "version": 3,
        }


def dtype_of(name: str) -> torch.dtype:
    """The torch dtype of this name. Raises ValueError for anything else."""
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"no dtype {name!r}")
    return found


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous tensor."""
    return tuple(math.prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape)))


def laid_out(shape: tuple[int, ...], layout: str) -> tuple[tuple[int, ...], int]:
    """Strides, and the offset of the first element from an aligned address, both in elements."""
    if layout.startswith("offset"):
        return row_major(shape), int(layout.removeprefix("offset"))
    if layout == "strided":  # every second column
        return tuple(2 * stride for stride in row_major(shape)), 0
    if layout == "padded":  # a pitch that is no multiple of 16 bytes
        return (*row_major((*shape[:-1], shape[-1] + 3))[:-1], 1), 0
    if layout == "expanded":  # one entry along the first axis stands for all
        return (0, *row_major(shape)[1:]), 0
    if layout == "transposed":
        swapped = row_major((*shape[:-2], shape[-1], shape[-2]))
        return (*swapped[:-2], swapped[-1], swapped[-2]), 0
    return row_major(shape), 0


def fits(shape: tuple[int, ...], layout: str) -> bool:
    """Whether a layout means something for this shape: enough axes, and more than one element along them."""
    if 0 in shape or not shape:
        return False
    if layout.startswith("offset"):
        return True
    if layout == "transposed":
        return len(shape) >= 2 and shape[-1] > 1 and shape[-2] > 1
    if layout == "padded":
        return len(shape) >= 2 and shape[-2] > 1
    return shape[0] > 1 if layout == "expanded" else shape[-1] > 1


def reach(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last of a strided tensor, both included."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _aligned(value: int, step: int = ALIGNMENT_BYTES) -> int:
    return -(-value // step) * step
