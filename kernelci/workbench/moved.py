"""Inputs that are off by an ulp or two: what a kernel that rounds in another order may as well have computed with.

Wilkinson's view of rounding (Higham, "Accuracy and Stability of Numerical Algorithms", chapter 1): what a stable
algorithm returns is the right answer to inputs that are off by a few ulp. What that does to an answer says how much of
it rounding costs, in whatever order; one float32 implementation's own error does not, since it may be zero by luck.
"""

from collections.abc import Mapping
from typing import Any

import torch

STRETCHES = 16  # of an input's last axis: partial sums of a stretch are rounded together
AT_ONCE = 2**24  # elements, whose places take several times their own memory


def moved(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every float32 or float64 tensor with its elements 0, 1 or 2 · ε closer to zero; all else as it is.

    Towards zero, since a domain that ends at one ends there for the reference too. An element's share follows from its
    place: half of it is its own, half its stretch's of the last axis, so that neither neighbours nor partial sums
    cancel.
    """
    return {name: _moved(value) if _is_wide(value) else value for name, value in inputs.items()}


def _is_wide(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float64)


def _moved(values: torch.Tensor) -> torch.Tensor:
    columns, eps = values.shape[-1] if values.dim() else 1, torch.finfo(values.dtype).eps
    after = values.clone(memory_format=torch.contiguous_format)
    flat = after.view(-1)
    for begin in range(0, flat.numel(), AT_ONCE):
        part = flat[begin : begin + AT_ONCE]
        steps = _steps(begin, part.numel(), columns, values.device)
        part.mul_(1 - eps * steps.to(values.dtype))
    return after


def _steps(begin: int, count: int, columns: int, device: torch.device) -> torch.Tensor:
    """0, 1 or 2 for each of `count` elements in rows of `columns`."""
    place = torch.arange(begin, begin + count, device=device)
    row, column = place // columns, place % columns
    return _coin(place) + _coin(row * STRETCHES + column * STRETCHES // columns + 1)


def _coin(place: torch.Tensor) -> torch.Tensor:
    """0 or 1 for each place, as good as thrown: a multiplicative hash (Knuth, "Sorting and Searching", 6.4)."""
    mixed = (place * 2654435761) & 0xFFFFFFFF
    return ((mixed ^ (mixed >> 15)) * 2246822519 >> 13) & 1
