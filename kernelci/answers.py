"""What a reference's `compare` can use: outputs with more than one right answer, and outputs that are random.

`compare(name, actual, oracle, inputs)` returns None where the usual gates decide, a tensor that is True where an
element is wrong, or a text that says what is wrong.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Kolmogorov's statistic times √n stays below this for a right sample but once in 10^8 draws.
_KOLMOGOROV = 3.1


def among_ties(
    values: "torch.Tensor", actual: "torch.Tensor", oracle: "torch.Tensor", dim: int = -1, distinct: bool = True
) -> "torch.Tensor":
    """Where an index is wrong, if any index of an equal value is right (argmax, top-k, a sort's permutation).

    Out of range is wrong; with `distinct` so is an index that occurs twice along `dim`.
    """
    inside = (actual >= 0) & (actual < values.shape[dim])
    chosen = actual.long().clamp(0, max(values.shape[dim] - 1, 0))
    bad = ~inside | (values.gather(dim, chosen) != values.gather(dim, oracle.long()))
    if distinct and actual.shape[dim] > 1:
        order = chosen.argsort(dim=dim, stable=True)
        along = chosen.gather(dim, order)
        twice = along.new_zeros(along.shape, dtype=along.dtype).bool()
        length = along.shape[dim]
        twice.narrow(dim, 1, length - 1).copy_(along.narrow(dim, 1, length - 1) == along.narrow(dim, 0, length - 1))
        bad |= twice.scatter(dim, order, twice)
    return bad


def among_nearest(exact: "torch.Tensor", actual: "torch.Tensor", ulps: float = 8.0) -> "torch.Tensor":
    """Where an integer is wrong, if any is right that `exact` (float64, clamped) rounds to when it is off by `ulps` of
    float32. For quantized outputs: near a tie either is right, whether a kernel divides by a scale or multiplies.
    """
    return ~((actual.double() - exact).abs() <= 0.5 + ulps * 2.0**-23 * exact.abs())


def follows(sample: "torch.Tensor", cumulative: Callable[["torch.Tensor"], "torch.Tensor"]) -> str:
    """Empty if a random output follows a distribution, by Kolmogorov and Smirnov; else how far off it is.

    `cumulative` gives the share of the distribution at or below each value.
    """
    found = sample.double().reshape(-1)
    if not found.numel():
        return ""
    if bool(found.isnan().any()):
        return "NaN among the samples"
    places, counts = found.unique(return_counts=True)
    count = found.numel()
    distance = float((counts.cumsum(0) / count - cumulative(places)).abs().amax())
    limit = _KOLMOGOROV / math.sqrt(count)
    return "" if distance <= limit else f"distance from the distribution is {distance:.3g}, and {limit:.3g} is allowed"


def share(flags: "torch.Tensor", probability: float) -> str:
    """Empty if the share of True fits a probability (dropout masks, Bernoulli draws) within six deviations."""
    count = max(flags.numel(), 1)
    found = float(flags.double().mean()) if flags.numel() else probability
    room = 6 * math.sqrt(max(probability * (1 - probability), 1e-12) / count)
    return "" if abs(found - probability) <= room else f"a share of {found:.4g}, and {probability:.4g} is right"
