"""Draws: the values of a case's inputs, from a secret seed, in families that reveal what normal numbers hide.

A reference asks for `draw.normal(...)`; the family decides what it gets. A name like `outliers:1` is a family and the
number of its repetition; with the run's seed it reproduces the same values on the same kind of device.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import torch

Shape = tuple[int, ...]


class Draw:
    """The source of a case's inputs for one family and seed, on one device."""

    def __init__(self, name: str, seed: str, device: str) -> None:
        self.name = name
        self.device = device
        self._family = FAMILIES[name.partition(":")[0]]
        self._generator = torch.Generator(device=device)
        self._generator.manual_seed(_number(f"{seed}/{name}"))

    def normal(self, *shape: int, dtype: Any, mean: float = 0.0, scale: float = 1.0) -> torch.Tensor:
        """Floats of this shape and dtype around `mean`, of about the size `scale`, as the family wants them."""
        values = self._family(self, shape) * scale
        return (values + mean if mean else values).to(dtype)  # adding 0.0 would make +0.0 of -0.0

    def uniform(self, *shape: int, dtype: Any, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """Floats in [low, high), the same in every family: for inputs with a meaning that other values would break."""
        values = torch.rand(shape, generator=self._generator, device=self.device, dtype=torch.float64)
        return (values * (high - low) + low).to(dtype)

    def integers(self, *shape: int, low: int, high: int, dtype: Any = torch.int64) -> torch.Tensor:
        """Integers in [low, high)."""
        return torch.randint(low, high, shape, generator=self._generator, device=self.device, dtype=dtype)

    def standard(self, shape: Shape) -> torch.Tensor:
        """Standard normal float32 values."""
        return torch.randn(shape, generator=self._generator, device=self.device, dtype=torch.float32)

    def mask(self, shape: Shape, share: float) -> torch.Tensor:
        """True at about this share of the places."""
        return torch.rand(shape, generator=self._generator, device=self.device) < share


class Sketch:
    """Draws shapes only: tensors on the meta device, for compiling without data."""

    device = "meta"

    def normal(self, *shape: int, dtype: Any, mean: float = 0.0, scale: float = 1.0) -> torch.Tensor:
        """A tensor of this shape and dtype without values."""
        return torch.empty(shape, dtype=dtype, device="meta")

    def uniform(self, *shape: int, dtype: Any, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """A tensor of this shape and dtype without values."""
        return torch.empty(shape, dtype=dtype, device="meta")

    def integers(self, *shape: int, low: int, high: int, dtype: Any = torch.int64) -> torch.Tensor:
        """A tensor of this shape and dtype without values."""
        return torch.empty(shape, dtype=dtype, device="meta")


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _normal(draw: Draw, shape: Shape) -> torch.Tensor:
    return draw.standard(shape)


def _large(draw: Draw, shape: Shape) -> torch.Tensor:
    return draw.standard(shape) * 64


def _tiny(draw: Draw, shape: Shape) -> torch.Tensor:
    return draw.standard(shape) * 2.0**-10


def _outliers(draw: Draw, shape: Shape) -> torch.Tensor:
    """A few channels a hundred times larger than the rest, as activations of language models have them."""
    values = draw.standard(shape)
    channels = draw.mask(shape[-1:], 0.01)
    return torch.where(channels, values * 100, values)


def _constant_rows(draw: Draw, shape: Shape) -> torch.Tensor:
    return draw.standard((*shape[:-1], 1)).expand(shape).clone()


def _ties(draw: Draw, shape: Shape) -> torch.Tensor:
    return draw.standard(shape).round()


def _zeros(draw: Draw, shape: Shape) -> torch.Tensor:
    """Mostly zeros of both signs."""
    values = draw.standard(shape)
    return torch.where(draw.mask(shape, 0.9), values.sign() * 0.0, values)


def _cancelling(draw: Draw, shape: Shape) -> torch.Tensor:
    """Neighbours along the last axis nearly cancel: large terms, a small sum."""
    values = draw.standard(shape) * 16
    if shape[-1] > 1:
        pairs = shape[-1] // 2
        small = draw.standard((*shape[:-1], pairs))
        values[..., 1 : 2 * pairs : 2] = small / 16 - values[..., 0 : 2 * pairs : 2]
    return values


def _offset(draw: Draw, shape: Shape) -> torch.Tensor:
    """A large common mean and a small spread."""
    return draw.standard(shape) * 0.25 + 8


FAMILIES: dict[str, Callable[[Draw, Shape], torch.Tensor]] = {
    "normal": _normal,
    "large": _large,
    "tiny": _tiny,
    "outliers": _outliers,
    "constant-rows": _constant_rows,
    "ties": _ties,
    "zeros": _zeros,
    "cancelling": _cancelling,
    "offset": _offset,
}
STRESS = tuple(name for name in FAMILIES if name != "normal")


def names(seeds: int) -> tuple[str, ...]:
    """The draws of a case: normal ones under `seeds` seeds, then one of each stress family."""
    return (*(f"normal:{number}" for number in range(seeds)), *(f"{family}:0" for family in STRESS))
