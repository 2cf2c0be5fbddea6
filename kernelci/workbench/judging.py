"""The verdict on a call's outputs: the usual gates, or what the reference's own `compare` says."""

from collections.abc import Mapping
from typing import Any

import torch

from kernelci.reference import Reference, ReferenceFailed
from kernelci.workbench.compare import Comparison, compare, decided
from kernelci.workbench.drawn import Drawn


def judge(reference: Reference, drawn: Drawn, outputs: Mapping[str, torch.Tensor]) -> list[Comparison]:
    """One comparison per output. Raises ReferenceFailed where the reference's `compare` does not answer as it must."""
    return [_judged(reference, drawn, name, values) for name, values in outputs.items()]


def _judged(reference: Reference, drawn: Drawn, name: str, actual: torch.Tensor) -> Comparison:
    truth = drawn.truth
    return by_reference(reference, name, actual, truth.oracle[name], drawn.inputs) or compare(
        name,
        actual,
        truth.oracle[name],
        truth.honest[name],
        reference.precision,
        reference.nan_allowed,
        reference.budget,
        terms_of(drawn),
    )


def by_reference(
    reference: Reference, name: str, actual: torch.Tensor, oracle: torch.Tensor, inputs: Mapping[str, Any]
) -> Comparison | None:
    """What the reference's own `compare` says; None where it has none, or leaves this output to the usual gates.

    Raises ReferenceFailed.
    """
    own = reference.compare(name, actual, oracle, inputs)
    if own is None or isinstance(own, str | torch.Tensor):
        return None if own is None else decided(name, actual, own)
    raise ReferenceFailed(
        f"{reference.name}: compare() gave {type(own).__name__}; it must give None, a tensor, or text"
    )


def terms_of(drawn: Drawn) -> int:
    """How long a sum may be: the longest last axis of an input."""
    return max((value.shape[-1] for value in drawn.inputs.values() if getattr(value, "ndim", 0)), default=0)
