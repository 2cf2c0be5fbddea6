"""A KernelBench problem as a reference: `Model`, `get_inputs` and `get_init_inputs`, as they are.

The one case has the shapes and dtypes that `get_inputs` shows. Inputs are the tensors of `get_inputs` by the names of
`forward`, and the module's weights; both are drawn by the referee, the weights from the families that the module starts
them with. The oracle is the module in float64.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from kernelci.problems.modules import Function, origin_of
from kernelci.problems.offline import NeedsNetwork, offline
from kernelci.problems.origins import TIED, Origin, Watched
from kernelci.reference import Case, Cost, ReferenceFailed, TensorSpec

LARGEST_BYTES = 48 * 2**30
"""Of inputs, weights and outputs: beyond this no GPU has room for them, their oracle and their slots."""
SEED = 0  # under which both sides build the module; its weights are replaced by what the referee draws
_UNFIT = re.compile(r"\W")


def adapt(path: Path, load: Callable[[], ModuleType]) -> ModuleType:
    """A module of a reference's functions for the problem in `path`. Raises ReferenceFailed with what is wrong."""
    try:
        with offline():
            problem = Problem(path.name, load())
    except NeedsNetwork as error:
        raise ReferenceFailed(f"{path.name}: needs the network ({error}); nothing is fetched for a problem") from error
    return problem.module()


class Problem:
    """What a problem's file declares, found out once."""

    def __init__(self, file: str, module: ModuleType) -> None:
        self._file = file
        self._module = module
        self._get_inputs: Callable[[], Any] = module.get_inputs
        self._init = tuple(self._asked("get_init_inputs", getattr(module, "get_init_inputs", list)))
        self._refuse_unsendable()
        shown, sketch, watched = self._sketched()
        names = _names(module.Model.forward, len(shown))
        self._shown = dict(zip(names, shown, strict=True))
        self._tensors = {name: value for name, value in self._shown.items() if isinstance(value, torch.Tensor)}
        self._origins = {name: watched.of(value) for name, value in self._tensors.items()}
        if not self._tensors:
            raise ReferenceFailed(f"{file}: get_inputs() gives no tensor")
        self._weights = {_fit(name, names): name for name, _ in sketch.named_parameters()}
        self._refuse_large([*self._tensors.values(), *sketch.parameters()])
        self._model = self._built()
        self._notes: list[str] = []
        self._find_origins()
        self._function = Function(self._model)
        self._outputs, self._flops = self._called_on_nothing(sketch)
        self._refuse_large([*self._tensors.values(), *sketch.parameters(), *self._outputs.values()])
        self._steady = False
        floats = [value.dtype for value in self._tensors.values() if value.is_floating_point()]
        self._dtype = str(floats[0] if floats else next(iter(self._outputs.values())).dtype).removeprefix("torch.")

    def _asked(self, what: str, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except NeedsNetwork:
            raise
        except Exception as error:
            raise ReferenceFailed(f"{self._file}: {what}() raised {type(error).__name__}: {error}") from error

    def _sketched(self) -> tuple[Any, Any, Watched]:
        """Inputs and module without memory, and how they were made; real ones where their code asks for values."""
        try:
            with torch.device("meta"), Watched() as watched:
                return self._get_inputs(), self._module.Model(*self._init), watched
        except NeedsNetwork:
            raise
        except Exception:
            with Watched() as watched:
                shown = self._asked("get_inputs", self._get_inputs)
            return shown, self._built(), watched

    def _refuse_unsendable(self) -> None:
        """The arguments of the module travel to the kernel's process as plain values."""
        for value in self._init:
            if not _is_plain(value):
                kind = type(value).__name__
                raise ReferenceFailed(
                    f"{self._file}: get_init_inputs() gives a {kind}; only plain values can be passed"
                )

    def _refuse_large(self, tensors: list[torch.Tensor]) -> None:
        needed = sum(value.numel() * value.element_size() for value in tensors)
        if needed > LARGEST_BYTES:
            limit = f"{LARGEST_BYTES / 2**30:.0f} GiB"
            raise ReferenceFailed(
                f"{self._file}: takes {needed / 2**30:.0f} GiB of inputs, weights and outputs; {limit} is the most"
            )

    def _built(self) -> torch.nn.Module:
        """The module, with real weights, the same in every process."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            model = self._asked("Model", lambda: self._module.Model(*self._init))
        if not isinstance(model, torch.nn.Module):
            raise ReferenceFailed(f"{self._file}: Model is no torch.nn.Module")
        return model

    def _find_origins(self) -> None:
        """Where inputs and weights come from, and what the reader must know of it."""
        own = {name for name, origin in self._origins.items() if not origin.drawn}
        seen = [self._own(seed) for seed in (1, 2)] if own else []
        for name in self._tensors:
            if any(one[name].shape != self._tensors[name].shape for one in seen):
                raise ReferenceFailed(f"{self._file}: input {name} has another shape in every call of get_inputs()")
            if name in own and all(torch.equal(one[name], seen[0][name]) for one in seen):
                self._origins[name] = Origin("constant")
                if not bool(seen[0][name].any()):
                    raise ReferenceFailed(f"{self._file}: input {name} is all zeros in every call: it shows nothing")
            value = self._tensors[name]
            kind = str(value.dtype).removeprefix("torch.")
            self._notes.append(f"input {name}: {self._origins[name].text()}, {tuple(value.shape)} {kind}")
        for name, own_name in self._weights.items():
            self._origins[name], said = origin_of(self._model.get_parameter(own_name))
            if said:
                self._notes.append(f"weight {own_name}: {said}, the same on both sides")

    def _own(self, seed: int) -> dict[str, Any]:
        """The inputs as the problem itself makes them under a seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return dict(zip(self._shown, self._asked("get_inputs", self._get_inputs), strict=True))

    def _called_on_nothing(self, sketch: torch.nn.Module) -> tuple[dict[str, torch.Tensor], float]:
        """Outputs without values, and how many FLOP torch counts; of real values where the module asks for some."""
        values = {name: value.to("meta") for name, value in self._tensors.items()}
        try:
            with FlopCounterMode(display=False) as counted, torch.no_grad():
                made = sketch(*[values.get(name, value) for name, value in self._shown.items()])
        except Exception:
            given = self._own(SEED)
            with FlopCounterMode(display=False) as counted, torch.no_grad():
                made = self._asked("forward", lambda: self._model(*given.values()))
        found = made if isinstance(made, tuple | list) else (made,)
        if not all(isinstance(one, torch.Tensor) for one in found):
            raise ReferenceFailed(f"{self._file}: forward() gives {type(made).__name__}, not tensors")
        taken = {*self._shown, *self._weights}
        stem = next(name for name in ("y", "out", "result", "y_") if name not in taken)
        names = [stem] if len(found) == 1 else [f"{stem}{number}" for number in range(len(found))]
        return dict(zip(names, found, strict=True)), float(counted.get_total_flops())

    def module(self) -> ModuleType:
        """The functions that `kernelci.reference.Reference` asks for."""
        made = ModuleType(self._module.__name__)
        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in (*self._shown, *self._weights)
        ]

        def reference(**inputs: Any) -> tuple[torch.Tensor, ...]:
            return self._reference(inputs)

        reference.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        made.__dict__.update(
            cases=self._cases, inputs=self._inputs, outputs=self._specs, cost=self._cost, reference=reference,
            precision=getattr(self._module, "precision", None), notes=tuple(self._notes), one_shape=True,
            avoided=() if all(value.is_floating_point() for value in self._outputs.values()) else TIED,
            unpoked=tuple(name for name, origin in self._origins.items() if not origin.drawn),
        )  # fmt: skip
        return made

    def _cases(self) -> Iterator[Case]:
        """The one setting, to be checked and to be timed."""
        first = next(iter(self._tensors.values()))
        sizes = tuple((f"size{axis}", int(size)) for axis, size in enumerate(first.shape))
        hidden = (("_init", self._init), ("_inputs", tuple(self._shown)), ("_weights", tuple(self._weights.items())))
        values = (*sizes, ("dtype", self._dtype), *hidden)
        yield Case("check", values, "as get_inputs shows")
        yield Case("bench", values, "as get_inputs shows")

    def _inputs(self, case: Case, draw: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        own = self._own_values(draw)
        for name, value in self._shown.items():
            if name not in self._tensors:
                made[name] = value
            elif name in own:
                made[name] = own[name].to(self._as_run(value.dtype, case)).contiguous()
            else:
                made[name] = self._origins[name].draw(draw, tuple(value.shape), self._as_run(value.dtype, case))
        for name, own_name in self._weights.items():
            weight = self._model.get_parameter(own_name)
            made[name] = self._origins[name].draw(draw, tuple(weight.shape), self._as_run(weight.dtype, case))
        return made

    def _own_values(self, draw: Any) -> dict[str, torch.Tensor]:
        """Those that only the problem itself can make, under a seed that the referee draws."""
        own = [name for name in self._tensors if not self._origins[name].drawn]
        if not own:
            return {}
        if draw.device == "meta":
            return {name: self._tensors[name].to("meta") for name in own}
        seed = int(draw.uniform(1, dtype=torch.float64) * 2**52)
        found = self._own(seed)
        return {name: found[name].to(draw.device) for name in own}

    def _as_run(self, dtype: torch.dtype, case: Case) -> torch.dtype:
        """The dtype in which a case has a tensor: it may run with other data than the file names."""
        named = getattr(torch, self._dtype)
        return case.dtype if dtype == named else dtype

    def _specs(self, case: Case) -> dict[str, TensorSpec]:
        dtypes = {name: self._as_run(value.dtype, case) for name, value in self._outputs.items()}
        return {
            name: TensorSpec(tuple(value.shape), str(dtypes[name]).removeprefix("torch."))
            for name, value in self._outputs.items()
        }

    def _cost(self, case: Case) -> Cost:
        """What torch counts of products and convolutions; else one operation for each element that is touched."""
        weights = [self._model.get_parameter(name) for name in self._weights.values()]
        touched = [*self._tensors.values(), *weights, *self._outputs.values()]
        moved = sum(value.numel() * value.element_size() for value in touched)
        return Cost(self._flops or float(sum(value.numel() for value in touched)), float(moved))

    def _reference(self, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        weights = {own: inputs[name] for name, own in self._weights.items()}
        arguments = tuple(inputs[name] for name in self._shown)
        found = self._function(weights, arguments)
        results = tuple(found) if isinstance(found, tuple | list) else (found,)
        if not self._steady:
            again = self._function(weights, arguments)
            others = tuple(again) if isinstance(again, tuple | list) else (again,)
            if not all(map(_same, results, others)):
                raise RandomByItself("two calls on the same inputs differ: the problem is random by itself")
            self._steady = True
        return results


class RandomByItself(Exception):
    """The module draws numbers of its own (dropout, sampling), so that there is nothing to be right about."""


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(torch.allclose(one.double(), other.double(), rtol=1e-6, atol=1e-9, equal_nan=True))


def _names(forward: Any, count: int) -> list[str]:
    """The names of what `get_inputs` gives: those of forward's parameters."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [name for name, one in inspect.signature(forward).parameters.items() if one.kind in kinds][1:]
    return [known[number] if number < len(known) else f"input{number}" for number in range(count)]


def _fit(name: str, taken: list[str]) -> str:
    """A weight's name as a parameter: `conv.weight` is `conv_weight`."""
    fit = _UNFIT.sub("_", name)
    return f"weight_{fit}" if fit in taken else fit


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(one) for one in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
    return value is None or isinstance(value, bool | int | float | str)
