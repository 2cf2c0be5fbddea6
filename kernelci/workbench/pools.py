"""Fresh values for many slots at once: each slot gets a stretch of its own of a pool that is drawn for one window.

Slot i's tensor begins i · step elements further in the pool, and the step is secret, new in every window, and another
for each tensor: else of an elementwise operation the next slot's outputs would be this one's, shifted. So a
window's values cost one draw and one copy each tensor, however many slots it has, and the truth of each slot is known
from the pool, which no candidate can map.
"""

import math
from collections.abc import Callable
from random import Random
from typing import Any

import torch

from kernelci.reference import Case, Reference, ReferenceFailed
from kernelci.workbench.arena import row_major
from kernelci.workbench.draws import Draw, Sketch

# A step is one of these: short beside a row, so that slots which share one lie far apart; and of whole words of eight
# bytes, so that a GPU copies words instead of elements.
STEPS = range(64, 1024, 8)
# A pool may be longer by so many elements, if need be: up to as many for each slot no value lies in two of them.
OWN_ELEMENTS = 2**25


class Pool:
    """The values of one tensor for all slots of a window."""

    def __init__(self, values: torch.Tensor, shape: tuple[int, ...], step: int) -> None:
        self._values = values
        self._shape = shape
        self._step = step

    def stacked(self, count: int) -> torch.Tensor:
        """The tensors of the first `count` slots, one above the other: shape (count, …), overlapping memory."""
        return self._values.as_strided((count, *self._shape), (self._step, *row_major(self._shape)))


class Stretched(Draw):
    """A draw that gives a reference its first slot's tensors, and keeps the pools that they begin."""

    def __init__(self, name: str, seed: str, device: str, count: int, steps: Random) -> None:
        super().__init__(name, seed, device)
        self._count = count
        self._steps = steps
        self._pools: list[tuple[torch.Tensor, Pool]] = []

    def normal(self, *shape: int, dtype: Any, mean: float = 0.0, scale: float = 1.0) -> torch.Tensor:
        """As `Draw.normal`."""
        return self._stretch(
            shape, lambda size: super(Stretched, self).normal(size, dtype=dtype, mean=mean, scale=scale)
        )

    def uniform(self, *shape: int, dtype: Any, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """As `Draw.uniform`."""
        return self._stretch(shape, lambda size: super(Stretched, self).uniform(size, dtype=dtype, low=low, high=high))

    def integers(self, *shape: int, low: int, high: int, dtype: Any = torch.int64) -> torch.Tensor:
        """As `Draw.integers`."""
        return self._stretch(shape, lambda size: super(Stretched, self).integers(size, low=low, high=high, dtype=dtype))

    def _stretch(self, shape: tuple[int, ...], make: Callable[[int], torch.Tensor]) -> torch.Tensor:
        size = math.prod(shape)
        step = self._steps.choice(STEPS) + min(size, OWN_ELEMENTS // self._count) // 8 * 8
        values = make(size + (self._count - 1) * step)
        first = values[:size].view(shape)
        self._pools.append((first, Pool(values, shape, step)))
        return first

    def pool_of(self, tensor: torch.Tensor) -> Pool | None:
        """The pool that a tensor begins, if it is just as it was drawn."""
        return next((pool for first, pool in self._pools if first is tensor), None)


def draw(
    reference: Reference, case: Case, name: str, seed: str, device: str, count: int, steps: Random
) -> dict[str, Any]:
    """A Pool for every tensor among a case's inputs, scalars as they are; for a reference whose inputs are more than
    plain draws (`is_plain`), each slot is drawn by itself. `steps`: a secret source of the pools' steps."""
    stretched = Stretched(name, f"{seed}/{reference.name}/{case.id}", device, count, steps)
    inputs = reference.inputs(case, stretched)
    pools = {
        key: stretched.pool_of(value) if isinstance(value, torch.Tensor) else value for key, value in inputs.items()
    }
    if all(pools[key] is not None for key, value in inputs.items() if isinstance(value, torch.Tensor)):
        return pools
    return _one_by_one(reference, case, name, seed, device, count)


def is_plain(reference: Reference, case: Case) -> bool:
    """Whether all of a case's inputs are just as they were drawn, so that they may be stretched."""
    sketch = _Marked()
    try:
        inputs = reference.inputs(case, sketch)
    except ReferenceFailed:
        return False
    return all(
        any(value is one for one in sketch.drawn) for value in inputs.values() if isinstance(value, torch.Tensor)
    )


class _Marked(Sketch):
    """A sketch that remembers which tensors it gave, but for those with a structure of their own."""

    def __init__(self) -> None:
        self.drawn: list[torch.Tensor] = []

    def normal(self, *shape: int, dtype: Any, mean: float = 0.0, scale: float = 1.0) -> torch.Tensor:
        """A tensor without values."""
        return self._mark(super().normal(*shape, dtype=dtype))

    def uniform(self, *shape: int, dtype: Any, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        """A tensor without values."""
        return self._mark(super().uniform(*shape, dtype=dtype))

    def integers(self, *shape: int, low: int, high: int, dtype: Any = torch.int64) -> torch.Tensor:
        """A tensor without values."""
        return self._mark(super().integers(*shape, low=low, high=high, dtype=dtype))

    def _mark(self, tensor: torch.Tensor) -> torch.Tensor:
        self.drawn.append(tensor)
        return tensor


def _one_by_one(reference: Reference, case: Case, name: str, seed: str, device: str, count: int) -> dict[str, Any]:
    drawn = [
        reference.inputs(case, Draw(name, f"{seed}/{reference.name}/{case.id}/{slot}", device)) for slot in range(count)
    ]
    return {
        key: Pool(torch.cat([one[key].reshape(-1) for one in drawn]), tuple(value.shape), value.numel())
        if isinstance(value, torch.Tensor)
        else value
        for key, value in drawn[0].items()
    }
