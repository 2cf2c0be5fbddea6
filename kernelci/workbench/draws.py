"""Draws: the values of a case's inputs, from a secret seed, in families that reveal what normal numbers hide.

A reference asks for `draw.normal(...)`; the family decides what it gets. A name like `outliers:1` is a family and the
number of its repetition; with the run's seed it reproduces the same values on the same kind of device.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import torch

from kernelci.workbench.gates import Equal
from kernelci.workbench.narrow import encoded, facts, logical_shape

Shape = tuple[int, ...]
SWUNG = 512  # terms whose sum stays some five standard deviations below fp16's largest number
SWING = 4096  # elements; half normal ones times 64 come to 209,000, three times the largest number of fp16


class Draw:
    """The source of a case's inputs for one family and seed, on one device."""

    def __init__(self, name: str, seed: str, device: str) -> None:
        self.name = name
        self.device = device
        self.family = name.partition(":")[0]
        self._make = FAMILIES[self.family]
        self._tensors = 0
        self._generator = torch.Generator(device=device)
        self._generator.manual_seed(number_of(f"{seed}/{name}"))

    @property
    def first(self) -> bool:
        """Whether the first tensor of floats is being drawn: some families want one input to differ from the rest."""
        return self._tensors == 1

    def normal(self, *shape: int, dtype: Any, mean: float = 0.0, scale: float = 1.0) -> torch.Tensor:
        """Floats of this shape and dtype around `mean`, of about the size `scale`, as the family wants them."""
        self._tensors += 1
        values = self._make(self, logical_shape(shape, dtype), dtype) * scale
        return encoded(values + mean if mean else values, dtype)  # adding 0.0 would make +0.0 of -0.0

    def uniform(self, *shape: int, dtype: Any, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """Floats in [low, high), the same in every family: for inputs with a meaning that other values would break."""
        size = logical_shape(shape, dtype)
        values = torch.rand(size, generator=self._generator, device=self.device, dtype=torch.float64)
        return encoded(values * (high - low) + low, dtype)

    def integers(self, *shape: int, low: int, high: int, dtype: Any = torch.int64) -> torch.Tensor:
        """Integers in [low, high): even, or in some families skewed, as routing and gathering see them."""
        values = torch.randint(low, high, shape, generator=self._generator, device=self.device, dtype=torch.int64)
        if self.family == "outliers":  # nearly all in one bucket
            values = torch.where(self.mask(shape, 0.9), high - 1, values)
        elif self.family in ("constant", "zeros"):
            values = torch.full_like(values, low if self.family == "zeros" else high - 1)
        elif self.family == "sentinels":  # only the ends of the range
            values = torch.where(self.mask(shape, 0.5), low, high - 1)
        return values.to(dtype)

    def lengths(self, groups: int, total: int, dtype: Any = torch.int64) -> torch.Tensor:
        """`groups` lengths that add up to `total`: ragged, some zero; in some families equal, or all in one group."""
        if groups == 0:
            return torch.empty(0, dtype=dtype, device=self.device)
        if self.family in ("constant-rows", "constant"):
            even = torch.full((groups,), total // groups, dtype=torch.int64, device=self.device)
            even[: total % groups] += 1
            return even.to(dtype)
        last = groups - 1
        bucket = torch.randint(0, groups, (total,), generator=self._generator, device=self.device)
        if self.family in ("outliers", "zeros"):
            bucket = torch.full_like(bucket, last if self.family == "outliers" else 0)
        elif groups > 2:
            bucket = torch.where(bucket == 1, last, bucket)  # the second group is always empty
        return torch.bincount(bucket, minlength=groups).to(dtype)

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

    def lengths(self, groups: int, total: int, dtype: Any = torch.int64) -> torch.Tensor:
        """A tensor of this shape and dtype without values."""
        return torch.empty(groups, dtype=dtype, device="meta")


def number_of(text: str) -> int:
    """A seed from a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _normal(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    return draw.standard(shape)


def _large(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    return draw.standard(shape) * 64


def _tiny(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    return draw.standard(shape) * 2.0**-10


def _outliers(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """A few channels a hundred times larger than the rest, as activations of language models have them."""
    values = draw.standard(shape)
    channels = draw.mask(shape[-1:], 0.01)
    return torch.where(channels, values * 100, values)


def _constant_rows(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    return draw.standard((*shape[:-1], 1)).expand(shape).clone()


def _constant(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """All the same, about one: adding them up, an accumulator that is too narrow stops at 256 (bf16) or 2048 (fp16)."""
    return (draw.mask((32,), 0.5).float().mean() + 0.5 + draw.standard((1,)) / 64).expand(shape).clone()


def _ties(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    return draw.standard(shape).round()


def _zeros(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """Mostly zeros of both signs."""
    values = draw.standard(shape)
    return torch.where(draw.mask(shape, 0.9), values.sign() * 0.0, values)


def _denormals(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """Half of them around the smallest normal number, where a unit that flushes and one that does not part."""
    values = draw.standard(shape)
    return torch.where(draw.mask(shape, 0.5), values * facts(dtype).smallest_normal, values)


def _low_rank(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """Rank two over the last two axes, with one direction ten times stronger."""
    columns = shape[-1:]
    strong, weak = draw.standard((*shape[:-1], 1)), draw.standard((*shape[:-1], 1))
    return strong * draw.standard(columns) * 3 + weak * draw.standard(columns) * 0.3


def _cancelling(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """Neighbours along the last axis nearly cancel: large terms, a small sum."""
    values = draw.standard(shape) * 16
    if shape[-1] > 1:
        pairs = shape[-1] // 2
        small = draw.standard((*shape[:-1], pairs))
        values[..., 1 : 2 * pairs : 2] = small / 16 - values[..., 0 : 2 * pairs : 2]
    return values


def _swinging(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """Partial sums and products run far beyond 65,504 and come back: the first input changes its sign half way along,
    and in a long row after every 4096 elements, since partial sums that run on and on cost float32 its digits too. It
    does so along each axis, so that they come back in whatever order a sum over several axes is taken, and along the
    first too.

    It reveals an accumulator in fp16 (overflow), and partial sums kept in the output's dtype (they cancel).
    """
    narrow, long = facts(dtype).max < 2**16, max(1.0, shape[-1] / SWUNG)
    # Of long rows less comes back: in fp16 no more than what an output holds.
    values = draw.standard(shape).abs() * (28 * long**-0.25 if narrow else 64)
    if draw.first:
        for axis, size in enumerate(shape):
            stretch = max(1, min(size // 2, SWING))
            signs = 1 - 2 * (torch.arange(size, device=draw.device) // stretch % 2)
            values *= signs.view(-1, *(1,) * (len(shape) - axis - 1))
    return values


def _tail(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """One large term, then a long tail of small ones, each lost in an accumulator that is too narrow."""
    values = draw.standard(shape).abs() * 0.5
    values[..., :1] = 32
    return values


def _offset(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """A large common mean and a small spread."""
    return draw.standard(shape) * 0.25 + 8


def _sentinels(draw: Draw, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    """All below any sentinel that stands for minus infinity (-1e4 in fp16, -1e30 else)."""
    return (draw.standard(shape).abs() / 4 + 1).clamp(max=3) * -min(2.0**100, facts(dtype).max / 4)


FAMILIES: dict[str, Callable[[Draw, Shape, torch.dtype], torch.Tensor]] = {
    "normal": _normal,
    "large": _large,
    "cancelling": _cancelling,
    "swinging": _swinging,
    "tiny": _tiny,
    "outliers": _outliers,
    "tail": _tail,
    "constant-rows": _constant_rows,
    "ties": _ties,
    "zeros": _zeros,
    "denormals": _denormals,
    "low-rank": _low_rank,
    "constant": _constant,
    "offset": _offset,
    "sentinels": _sentinels,
}
EQUAL = ("constant", "constant-rows")  # whose elements are equal, at least along the last axis
# Where many are, or so near that their exp or their distance to the mean is; or where one exp outweighs so many others
# that one sum drops them all.
ALIKE = ("ties", "zeros", "denormals", "low-rank")
NEAR = ("offset", "sentinels")  # many are, in 16 bits: 8 ± ¼ are some thirty numbers of bf16
MATRIX = 2  # axes
STRESS = tuple(name for name in FAMILIES if name != "normal")


def equal(name: str, axes: int, narrow: bool = False) -> Equal:
    """How many elements of a draw of this name are equal, in tensors of so many axes; `narrow`: of 16 bits or less,
    which have few numbers around a large mean.

    `tail` has a large term in each row, all of them equal: one in a sum along the last axis, and many in a sum over
    several axes, as a convolution's is.
    """
    family = name.partition(":")[0]
    if family in EQUAL:
        return "all"
    alike = family in ALIKE or (family == "tail" and axes > MATRIX) or (family in NEAR and narrow)
    return "many" if alike else "few"


def names(seeds: int) -> tuple[str, ...]:
    """The draws of a case: normal ones under `seeds` seeds, then one of each stress family."""
    return (*(f"normal:{number}" for number in range(seeds)), *(f"{family}:0" for family in STRESS))
