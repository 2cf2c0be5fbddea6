"""What is said of a call's outputs: by the usual gates, or by the reference's own `compare`."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from kernelci.reference import Reference, ReferenceFailed
from kernelci.workbench.compare import Comparison, Pending, comparing, decided, settled
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.oracle import Truth

Outputs = Mapping[str, torch.Tensor]


def judge(reference: Reference, drawn: Drawn, outputs: Outputs) -> list[Comparison]:
    """One comparison per output. Raises ReferenceFailed where the reference's `compare` does not answer as it must."""
    return settled([_judging(reference, drawn, name, values) for name, values in outputs.items()])


def judge_all(
    reference: Reference, calls: Sequence[tuple[Drawn, Outputs]]
) -> "list[list[Comparison] | ReferenceFailed]":
    """`judge` of many calls, by one answer from the device for all of them; what it would raise stands for its list."""
    begun = [_begun(reference, drawn, outputs) for drawn, outputs in calls]
    found = iter(settled([one for pending in begun if isinstance(pending, list) for one in pending]))
    return [list(itertools.islice(found, len(pending))) if isinstance(pending, list) else pending for pending in begun]


def _begun(reference: Reference, drawn: Drawn, outputs: Outputs) -> "list[Pending] | ReferenceFailed":
    try:
        return [_judging(reference, drawn, name, values) for name, values in outputs.items()]
    except ReferenceFailed as error:
        return error


def _judging(reference: Reference, drawn: Drawn, name: str, actual: torch.Tensor) -> Pending:
    truth = drawn.truth
    by_itself = _by_reference(reference, name, actual, truth.oracle[name], drawn.inputs)
    shapes = [tuple(value.shape) for value in drawn.inputs.values() if hasattr(value, "shape")]
    return by_itself or by_gates(reference, name, actual, truth, shapes)


def by_gates(
    reference: Reference, name: str, actual: torch.Tensor, truth: Truth, shapes: Sequence[tuple[int, ...]]
) -> Pending:
    """What the usual gates say, as the reference sets them; `shapes`: of the inputs."""
    return comparing(
        name,
        actual,
        truth.oracle[name],
        truth.honest[name],
        reference.precision,
        reference.nan_allowed,
        reference.budget,
        terms(shapes),
        truth.moved.get(name),
        truth.equal,
        in_one(shapes),
    )


def by_reference(
    reference: Reference, name: str, actual: torch.Tensor, oracle: torch.Tensor, inputs: Mapping[str, Any]
) -> Comparison | None:
    """What the reference's own `compare` says; None where it has none, or leaves this output to the usual gates.

    Raises ReferenceFailed.
    """
    found = _by_reference(reference, name, actual, oracle, inputs)
    return None if found is None else settled([found])[0]


def _by_reference(
    reference: Reference, name: str, actual: torch.Tensor, oracle: torch.Tensor, inputs: Mapping[str, Any]
) -> Pending | None:
    own = reference.compare(name, actual, oracle, inputs)
    if own is None or isinstance(own, str | torch.Tensor):
        return None if own is None else decided(name, actual, own)
    raise ReferenceFailed(
        f"{reference.name}: compare() gave {type(own).__name__}; it must give None, a tensor, or text"
    )


def terms(shapes: Iterable[tuple[int, ...]]) -> int:
    """How long a sum may be, by the inputs' shapes: the longest last axis."""
    return max((shape[-1] for shape in shapes if shape), default=0)


def in_one(shapes: Iterable[tuple[int, ...]]) -> int:
    """How many terms one accumulator may add up, by the inputs' shapes: as long as their longest axis, or as all axes
    but the first, as a filter's or a layer norm's over several axes are, or all but the second, as a batch norm's."""
    return max((max(*shape, *(_but(shape, axis) for axis in range(2))) for shape in shapes if shape), default=0)


def _but(shape: tuple[int, ...], axis: int) -> int:
    return math.prod(shape[:axis] + shape[axis + 1 :])
