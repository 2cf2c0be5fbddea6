"""What bad values look like, and what failing cases have in common: the words that point to a cause."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch

SAMPLE = 4096  # bad elements that are looked at
SPREAD = 2**-7  # how far a factor may vary and still be called one: above the rounding of bfloat16
SHIFTS = (1, -1)
MULTIPLES = tuple(2**power for power in range(10, 0, -1))


def of_values(
    got: torch.Tensor, oracle: torch.Tensor, bad: torch.Tensor, inputs: Mapping[str, torch.Tensor] | None = None
) -> str:
    """What the bad elements are, in a few words, or nothing: zero, another constant, the expected values times
    a factor or shifted, an input unchanged. All tensors have one shape; `got` and `oracle` are numbers."""
    places = bad.reshape(-1).nonzero().reshape(-1)[:SAMPLE]
    if got.shape != oracle.shape or len(places) < 2:
        return ""
    found = got.reshape(-1)[places].double().cpu()
    wanted = oracle.reshape(-1)[places].double().cpu()
    if not bool(torch.isfinite(found).all()):
        return ""
    for text in (_constant(found), _input(found, got, places, inputs or {}), _shifted(found, oracle, places)):
        if text:
            return text
    return _factor(found, wanted) or _offset(found, wanted)


def _constant(found: torch.Tensor) -> str:
    if not bool((found == found[0]).all()):
        return ""
    return f"all of them are {float(found[0]):.6g}"


def _input(found: torch.Tensor, got: torch.Tensor, places: torch.Tensor, inputs: Mapping[str, torch.Tensor]) -> str:
    for name, values in inputs.items():
        comparable = values.shape == got.shape and values.dtype.itemsize > 1
        if comparable and torch.equal(values.reshape(-1)[places.to(values.device)].double().cpu(), found):
            return f"they are those of the input {name}, unchanged"
    return ""


def _shifted(found: torch.Tensor, oracle: torch.Tensor, places: torch.Tensor) -> str:
    """Whether each holds, up to rounding, what belongs to its neighbour on the last axis."""
    size = oracle.shape[-1] if oracle.dim() else 0
    flat = oracle.reshape(-1)
    for shift in SHIFTS:
        inside = (places % size + shift >= 0) & (places % size + shift < size) if size > 1 else places < 0
        if int(inside.sum()) >= 2 and _close(found[inside.cpu()], flat[places[inside] + shift].double().cpu()):
            return f"they are what belongs one place {'further' if shift > 0 else 'before'} on the last axis"
    return ""


def _close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    distinct = bool((wanted != wanted[0]).any())
    return distinct and bool(((found - wanted).abs() <= SPREAD * wanted.abs()).all())


def _factor(found: torch.Tensor, wanted: torch.Tensor) -> str:
    """Whether all are off by one factor."""
    usable = (wanted != 0) & torch.isfinite(wanted)
    if int(usable.sum()) < 2 or bool((found[~usable] != 0).any()):
        return ""
    factors = found[usable] / wanted[usable]
    middle = float(factors.median())
    error = abs(middle - 1)
    if middle == 0 or not bool(((factors - middle).abs() <= min(SPREAD * abs(middle), error / 4)).all()):
        return ""
    return (
        "they have the wrong sign" if abs(middle + 1) < SPREAD else f"they are the expected values times {middle:.4g}"
    )


def _offset(found: torch.Tensor, wanted: torch.Tensor) -> str:
    difference = found - wanted
    middle = float(difference.median())
    distinct = bool((wanted != wanted[0]).any())
    if not distinct or middle == 0 or not bool(((difference - middle).abs() <= abs(middle) / 16).all()):
        return ""
    return f"they are the expected values {'plus' if middle > 0 else 'minus'} {abs(middle):.4g}"


def of_cases(failed: Iterable[Mapping[str, Any]], passed: Iterable[Mapping[str, Any]]) -> str:
    """What all failing cases have and no passing one has: a type, a size beyond some limit, no multiple of a tile.

    Nothing where it can't be told, or where there are none of one kind.
    """
    bad, good = list(failed), list(passed)
    if not bad or len(good) < 2 or len(bad) + len(good) < 4:
        return ""
    names = [name for name in bad[0] if not name.startswith("_") and all(name in case for case in (*bad, *good))]
    found = (_of_one(name, [case[name] for case in bad], [case[name] for case in good]) for name in names)
    return ", or ".join(filter(None, found))


def _of_one(name: str, bad: list[Any], good: list[Any]) -> str:
    if any(type(value) is not int for value in (*bad, *good)):
        kinds = {str(value) for value in bad}
        return f"{name} is {kinds.pop()}" if len(kinds) == 1 and not kinds & {str(value) for value in good} else ""
    for multiple in MULTIPLES:
        if all(value % multiple for value in bad) and not any(value % multiple for value in good):
            return f"{name} is no multiple of {multiple}"
    if min(bad) > max(good):
        return f"{name} is {min(bad)} or more, and at most {max(good)} where it is right"
    if max(bad) < min(good):
        return f"{name} is {max(bad)} or less, and at least {min(good)} where it is right"
    return ""
