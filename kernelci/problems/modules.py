"""The module of a problem as a function of its weights: functional, in any precision, unharmed by a call."""

import copy
import threading
from collections.abc import Mapping
from typing import Any

import torch

from kernelci.problems.exact import Exact, widest
from kernelci.problems.origins import Origin

REDRAWN = 0.5  # how far from its constant a weight is drawn that starts as one
_UNIFORM_KURTOSIS = 2.4  # between the uniform distribution's 1.8 and the normal one's 3


class Function:
    """A module called with weights of the caller's. Buffers are its own, cloned for each call."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._kept: dict[tuple[torch.dtype, str], torch.nn.Module] = {}
        self._lock = threading.Lock()

    def __call__(self, weights: Mapping[str, torch.Tensor], arguments: tuple[Any, ...]) -> Any:
        """What `forward` gives, without gradients, in the widest dtype among the floats that are given."""
        given = [*weights.values(), *(value for value in arguments if isinstance(value, torch.Tensor))]
        model = self._like(given)
        buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        with torch.no_grad(), Exact(widest(given)):
            return torch.func.functional_call(model, {**weights, **buffers}, arguments, tie_weights=False)

    def _like(self, given: list[torch.Tensor]) -> torch.nn.Module:
        dtype = widest(given)
        device = given[0].device if given else torch.device("cpu")
        with self._lock:
            key = (dtype, str(device))
            if key not in self._kept:
                self._kept[key] = _converted(self._model, dtype, device)
            return self._kept[key]


def _converted(model: torch.nn.Module, dtype: torch.dtype, device: torch.device) -> torch.nn.Module:
    """A copy in this precision, with the tensors that it keeps as plain attributes. Its own weights are never used."""
    made = copy.deepcopy(model)
    for part in made.modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor):
                vars(part)[name] = value.to(device, dtype if value.is_floating_point() else None)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = buffer.to(device, dtype if buffer.is_floating_point() else None)
    return made


def origin_of(values: torch.Tensor) -> tuple[Origin, str]:
    """The family of a weight from the values that it starts with, and what is said of it.

    Ones, zeros and other constants are drawn anew around that constant: a kernel which leaves them out is wrong.
    """
    flat = values.detach().double().reshape(-1)
    if not len(flat):
        return Origin("randn"), ""
    low, high = float(flat.min()), float(flat.max())
    if low == high:
        return Origin("rand", scale=2 * REDRAWN, shift=low - REDRAWN), f"all {low:g}: redrawn around it"
    mean, spread = float(flat.mean()), float(flat.std())
    if float(((flat - mean) / spread).pow(4).mean()) < _UNIFORM_KURTOSIS:
        return Origin("rand", scale=high - low, shift=low), ""
    return Origin("randn", scale=spread, shift=mean if abs(mean) > spread / 4 else 0.0), ""
