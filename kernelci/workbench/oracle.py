"""The oracle: the reference in float64, and the honest implementation that sets the error budget.

The honest implementation is asked twice, the second time on inputs that are off by an ulp or two (`workbench.moved`).
Its first answer may be right by luck, as a mean of equal values is in one order of summation and not in another; the
second shows what an ulp on the way costs (Wilkinson's backward error).
"""

from collections.abc import Mapping
from typing import Any

import torch
from msgspec import Struct

from kernelci.reference import Reference, ReferenceFailed, TensorSpec
from kernelci.workbench.arena import dtype_of
from kernelci.workbench.compare import precision_of
from kernelci.workbench.gates import Equal
from kernelci.workbench.moved import moved
from kernelci.workbench.narrow import decoded, encoded, is_float, logical_shape


class Truth(Struct, frozen=True):
    """What is true of a case and draw: `oracle` in float64 (integers as they are), `honest` in the outputs' dtypes.

    `moved`: what the moved inputs cost the honest answer, before it is rounded. In full precision, and where the draw's
    elements are `equal`, that is its error; in low precision how far it moves, since a reference's `honest` may be
    coarser than float32 is.
    """

    oracle: dict[str, torch.Tensor]
    honest: dict[str, torch.Tensor]
    moved: dict[str, torch.Tensor] = {}
    equal: Equal = "few"


def ask(
    reference: Reference,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, TensorSpec],
    equal: Equal = "few",
    twice: bool = True,
) -> Truth:
    """Compute both on the device of the inputs; not `twice`: nothing is `moved`, and less is allowed. Raises
    ReferenceFailed, also for results of another shape."""
    names = tuple(outputs)
    oracle = reference.truth(widened(inputs, torch.float64), names)
    wide = widened(inputs, _accumulator(inputs))
    floats = [name for name in names if twice and is_float(dtype_of(outputs[name].dtype))]
    again = reference.honest(moved(wide), names) if floats else {}
    honest = reference.honest(wide, names)
    for name in names:
        for values in (oracle[name], honest[name]):
            _check_shape(reference, name, values, outputs[name])
    exact = {name: values.double() if values.is_floating_point() else values for name, values in oracle.items()}
    return Truth(
        exact,
        {name: rounded(values, dtype_of(outputs[name].dtype)) for name, values in honest.items()},
        {
            name: _apart(again[name], (exact if _by_error(reference, outputs[name], equal) else honest)[name])
            for name in floats
        },
        equal,
    )


def _apart(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """How far apart two answers are; a reference may give booleans for numbers."""
    one, other = (values if values.is_floating_point() else values.double() for values in (one, other))
    return (one - other).abs()


def _by_error(reference: Reference, spec: TensorSpec, equal: Equal) -> bool:
    """Whether the moved answer's own error counts, rather than how far it moved."""
    return equal == "all" or (reference.precision or precision_of(dtype_of(spec.dtype))) == "full"


def _check_shape(reference: Reference, name: str, values: torch.Tensor, spec: TensorSpec) -> None:
    expected = logical_shape(spec.shape, dtype_of(spec.dtype))
    if tuple(values.shape) != expected:
        shapes = f"{tuple(values.shape)}, declared is {expected}"
        raise ReferenceFailed(f"{reference.name}: reference() gives {name} of shape {shapes}")


def ask_stacked(
    reference: Reference,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, TensorSpec],
    count: int,
    twice: bool = True,
) -> Truth:
    """The truth of `count` calls at once: tensors of shape (count, …) in, and out; `twice` as in `ask`. Raises
    ReferenceFailed.

    A reference that torch can't map over the first axis is asked once for each call.
    """
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    scalars = {name: value for name, value in inputs.items() if name not in tensors}

    def one(some: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], ...]:
        truth = ask(reference, {**scalars, **some}, outputs, twice=twice)
        return truth.oracle, truth.honest, truth.moved

    try:
        sides = torch.func.vmap(one, randomness="error")(tensors)
    except (ReferenceFailed, RuntimeError, ValueError):  # ValueError: there is no tensor to map over
        each = [one({name: value[index] for name, value in tensors.items()}) for index in range(count)]
        sides = [
            {name: torch.stack([answers[name] for answers in calls]) for name in calls[0]}
            for calls in zip(*each, strict=True)
        ]
    found, honest, of_moved = sides
    return Truth(found, honest, of_moved)


def rounded(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Numbers in an output's dtype, rounded once."""
    return encoded(values, dtype) if is_float(dtype) else values.to(dtype)


def widened(inputs: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """The inputs with floats in this dtype, all else as it is. Tensors are copies: a reference can't harm them."""
    return {name: _widen(value, dtype) for name, value in inputs.items()}


def _widen(value: Any, dtype: torch.dtype) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if not is_float(value.dtype):
        return value.clone()
    return (
        value.to(dtype, copy=True)
        if value.dtype.is_floating_point and value.dtype.itemsize > 1
        else decoded(value, dtype)
    )


def _accumulator(inputs: Mapping[str, Any]) -> torch.dtype:
    """float32, or float64 where an input already is float64."""
    wide = any(isinstance(value, torch.Tensor) and value.dtype == torch.float64 for value in inputs.values())
    return torch.float64 if wide else torch.float32
