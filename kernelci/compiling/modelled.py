"""A KernelBench solution as an entry: a class `ModelNew`, called with the referee's inputs and weights by name.

The module is built once for a case, under the seed that the referee's own is built under, so that buffers agree. Its
weights are then taken from the arguments of every call: by name, else in order among those of the same shape.
"""

import contextlib
from collections.abc import Iterable
from typing import Any

import torch

SEED = 0


class Misfit(Exception):
    """The solution's module has no place for a weight of the problem's module."""


class Entry:
    """Callable with inputs and weights by name, after `prepare(case)`; returns what `forward` returns."""

    def __init__(self, solution: Any) -> None:
        self._solution = solution
        self._model: Any = None
        self._order: tuple[str, ...] = ()
        self._places: list[tuple[str, Any, str]] = []

    def prepare(self, case: Any) -> None:
        """Build the module and find a place for each weight. Raises Misfit."""
        values = vars(case)
        self._order = tuple(values["_inputs"])
        self._model = _built(self._solution, values["_init"])
        self._places = []
        self._weights = [(name, own) for name, own in values["_weights"]]

    def __call__(self, **inputs: Any) -> Any:
        weights = {name: inputs.pop(name) for name, _ in self._weights}
        if not self._places:
            self._places = list(_places(self._model, self._weights, weights))
        for name, owner, key in self._places:
            owner._parameters[key] = weights[name]
        with torch.no_grad():
            return self._model(*[inputs[name] for name in self._order])


def _built(solution: Any, arguments: Any) -> Any:
    """The module on the device that calls run on."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(SEED)
    if torch._guards.detect_fake_mode() is not None:  # a stand-in can't be moved: it is made there
        with torch.device(device), torch.random.fork_rng(devices=[]):
            return solution(*arguments)
    return solution(*arguments).to(device)


def _places(model: Any, names: Iterable[tuple[str, str]], weights: dict[str, Any]) -> Iterable[tuple[str, Any, str]]:
    """Where each weight goes: its name here, the module that has it and the name there."""
    own = dict(model.named_parameters()) if isinstance(model, torch.nn.Module) else {}
    free = dict(own)
    chosen: dict[str, str] = {}
    for name, theirs in names:
        if theirs in free and tuple(free[theirs].shape) == tuple(weights[name].shape):
            chosen[name] = theirs
            del free[theirs]
    for name, theirs in names:
        if name in chosen:
            continue
        shape = tuple(weights[name].shape)
        fitting = next((one for one, value in free.items() if tuple(value.shape) == shape), None)
        if fitting is None:
            known = ", ".join(f"{one} {tuple(value.shape)}" for one, value in own.items()) or "none"
            raise Misfit(f"no parameter for the weight {theirs} of shape {shape}; the module's own are {known}")
        chosen[name] = fitting
        del free[fitting]
    for name, found in chosen.items():
        owner, _, key = found.rpartition(".")
        yield name, model.get_submodule(owner), key


def offered(module: Any, name: str, solution: str) -> None:
    """Give a loaded file an entry called `name` and a `prepare`, from its class `solution`."""
    entry = Entry(getattr(module, solution))
    with contextlib.suppress(AttributeError):
        setattr(module, name, entry)
        module.prepare = entry.prepare
