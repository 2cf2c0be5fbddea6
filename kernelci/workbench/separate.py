"""Tensors in allocations of their own, for calls under a sanitizer (the untrusted side).

The arena is one allocation: an access beyond a tensor stays within it and no tool objects. Here each tensor of a call
has memory of exactly its size. Values travel through the host, so that no kernel but the one under test touches them,
and so that the tool sees who wrote what: inputs are written whole, outputs not at all.
"""

import torch

from kernelci.workbench.arena import Mapped, dtype_of
from kernelci.workbench.protocol import TensorPlace


class Separate:
    """Copies of what lies in an arena; `give_back` writes them to it."""

    def __init__(self, arena: Mapped, device: str) -> None:
        self._arena = arena
        self._device = device
        self._lent: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def view(self, place: TensorPlace) -> torch.Tensor:
        """A copy of the tensor at a place; the same one for the same place, as in-place arguments need it."""
        return self._lend(place, filled=True)

    def blank(self, place: TensorPlace) -> torch.Tensor:
        """Memory for the tensor at a place, which nobody has written to."""
        return self._lend(place, filled=False)

    def give_back(self) -> None:
        """Copy all that was lent since the last time into the arena."""
        for there, own in self._lent.values():
            there.copy_(own.cpu())
        self._lent.clear()

    def _lend(self, place: TensorPlace, filled: bool) -> torch.Tensor:
        dtype = dtype_of(place.dtype)
        size = _reach(place) * dtype.itemsize
        if place.offset not in self._lent:
            there = self._arena.view(TensorPlace(place.offset, (size,), (1,), "uint8"))
            own = torch.empty(size, dtype=torch.uint8, device=self._device)
            if filled:
                own.copy_(there.cpu())
            self._lent[place.offset] = (there, own)
        own = self._lent[place.offset][1]
        return own[:size].view(dtype).as_strided(place.shape, place.strides)


def _reach(place: TensorPlace) -> int:
    """Elements from the first to the last, both included."""
    if 0 in place.shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(place.shape, place.strides, strict=True))
