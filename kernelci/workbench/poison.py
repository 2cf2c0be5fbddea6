"""Poison: what outputs hold before a call, so that an element that nobody wrote shows; and the bits it shows in."""

import functools

import torch

from kernelci.reference import TensorSpec
from kernelci.workbench.narrow import is_float

# 16-bit words that are NaN in fp16, bf16, fp32 and fp64 alike, whichever part of a number they fall on.
_NAN_WORDS = [sign | word for sign in (0x0000, -0x8000) for word in range(0x7FF1, 0x8000)]
_PATTERN_WORDS = 2**20  # longer stretches repeat this many random words


@functools.cache
def _nans(device: str) -> torch.Tensor:
    """The words where they are needed: copying them there would wait for all that the device does."""
    return torch.tensor(_NAN_WORDS, dtype=torch.int16).to(device)


def nan_words(size: int, device: str) -> torch.Tensor:
    """At least `size` bytes of random 16-bit words that read as NaN in every float dtype, as int16."""
    count = size // 2
    choice = torch.randint(len(_NAN_WORDS), (min(count, _PATTERN_WORDS),), device=device)
    words = _nans(device)[choice]
    return words if count <= _PATTERN_WORDS else words.repeat(-(-count // _PATTERN_WORDS))[:count]


def poisoned(spec: TensorSpec, device: str) -> torch.Tensor:
    """What an output holds before the first call: NaN of many patterns; integers: random bits."""
    dtype = getattr(torch, spec.dtype)
    if dtype == torch.bool:
        return torch.rand(spec.shape, device=device) < 0.5
    size = spec.elements * dtype.itemsize
    if is_float(dtype):
        words = nan_words(size + size % 2, device)
        return words.view(torch.uint8)[:size].view(dtype).view(spec.shape)
    return torch.randint(256, (size,), device=device, dtype=torch.uint8).view(dtype).view(spec.shape)


def repoisoned(poison: torch.Tensor) -> torch.Tensor:
    """What it holds before the second: plausible stale values; integers: all bits flipped, so none is both."""
    if poison.is_floating_point() and poison.dtype.itemsize > 1:
        return torch.randn(poison.shape, device=poison.device).to(poison.dtype)
    if poison.dtype == torch.bool:
        return ~poison
    flipped = ~poison.reshape(-1).view(torch.uint8)
    return flipped.view(poison.dtype).view(poison.shape)


def bits(values: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's elements as integers of the same width."""
    if values.numel() == 0:
        return values.reshape(-1).to(torch.uint8)
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return values.contiguous().view(sizes[values.dtype.itemsize])
