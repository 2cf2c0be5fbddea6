"""Where a type's range ends: which elements may be NaN, an infinity or the largest number, and which may not."""

import math

import torch

from kernelci.workbench.narrow import Float


def misplaced(
    got: torch.Tensor, rounded: torch.Tensor, oracle: torch.Tensor, kind: Float, nan_allowed: bool
) -> torch.Tensor:
    """Where NaN or an infinity stands on one side only; NaN equals NaN only where the reference says so.

    Beyond the largest number, a type of eight bits or less may saturate or not: GPUs have both conversions.
    """
    nans = torch.isnan(got) & torch.isnan(rounded)
    same_inf = torch.isinf(got) & (got == rounded)
    fine = torch.isfinite(got) & torch.isfinite(rounded) | same_inf | (nans if nan_allowed else same_inf)
    if kind.bits <= 8:
        beyond = ~within(oracle, kind)
        ends = (got == kind.max * torch.sign(oracle)) | ~torch.isfinite(got)
        fine = torch.where(beyond & ~torch.isnan(oracle), ends, fine)
    return ~fine


def at_the_edge(oracle: torch.Tensor, kind: Float, margin: torch.Tensor) -> torch.Tensor:
    """Where rounding right may end in a number or an infinity, since the sum before it may be off by that much."""
    if kind.bits <= 8:  # `misplaced` takes both
        return torch.zeros_like(oracle, dtype=torch.bool)
    return (oracle.abs() - kind.max * (1 + kind.eps / 4)).abs() <= margin


def either_side(got: torch.Tensor, oracle: torch.Tensor, margin: torch.Tensor) -> torch.Tensor:
    """Whether it is the infinity of that side, or as close as any element must be."""
    return ((got - oracle).abs() <= margin) | (got == torch.copysign(torch.full_like(got, math.inf), oracle))


def within(oracle: torch.Tensor, kind: Float) -> torch.Tensor:
    """Whether the oracle rounds to a finite number of the type; for wider types infinity says the same."""
    if kind.bits > 8:
        return torch.ones_like(oracle, dtype=torch.bool)
    return oracle.abs() <= kind.max * (1 + kind.eps / 4)
