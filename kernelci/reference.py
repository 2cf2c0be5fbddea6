"""What a reference file is made of: cases, inputs, outputs, the truth, and its cost.

A reference imports its vocabulary from here (`check`, `bench`, `like`, `tensor`); the referee loads it with `load`.
torch is imported only inside functions, so that the catalog stays light.
"""

import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    import torch

SHORT = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


class ReferenceFailed(Exception):
    """The reference itself is wrong or raised: BROKEN, never the kernel's fault."""


class Case(Struct, frozen=True):
    """One input setting. Its sizes and parameters are attributes: `case.rows`, `case.dtype` (a torch.dtype)."""

    kind: str  # "check" or "bench"
    values: tuple[tuple[str, Any], ...]
    title: str = ""

    def __getattr__(self, name: str) -> Any:
        for key, value in self.values:
            if key == name:
                return _torch_dtype(value) if key == "dtype" else value
        raise AttributeError(f"the case has no {name!r}; it has {', '.join(key for key, _ in self.values)}")

    @property
    def id(self) -> str:
        """A short name, fit for tables and file names: sizes in the declared order, then the rest: `17x1000-bf16`."""
        sizes = "x".join(str(value) for _, value in self.values if type(value) is int)
        rest = [
            SHORT.get(value, str(value)) if key == "dtype" else f"{key}{value}"
            for key, value in self.values
            if type(value) is not int
        ]
        return "-".join([part for part in (sizes, *rest) if part])

    def with_dtype(self, dtype: str) -> "Case":
        """The same case with other data."""
        return Case(self.kind, tuple((k, dtype if k == "dtype" else v) for k, v in self.values), self.title)


def check(title: str = "", **values: Any) -> Case:
    """A case for correctness: odd, tiny, empty, no multiple of a tile."""
    return Case("check", tuple(values.items()), title)


def bench(title: str, **values: Any) -> Case:
    """A case for timing: the shape of a real model, which the title names."""
    return Case("bench", tuple(values.items()), title)


class TensorSpec(Struct, frozen=True):
    """Shape and dtype (by its torch name) of a tensor; contiguous, row-major."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class Like(Struct, frozen=True):
    """An output with the shape and dtype of an input."""

    name: str


def like(name: str) -> Like:
    """An output that has the shape and dtype of the input `name`."""
    return Like(name)


def tensor(*shape: int, dtype: Any) -> TensorSpec:
    """An output of this shape and dtype."""
    return TensorSpec(tuple(shape), str(dtype).removeprefix("torch."))


class Cost(Struct, frozen=True):
    """What a case must do at least. `bytes` None: every input read once and every output written once."""

    flops: float
    bytes: float | None = None


class Reference:
    """A loaded reference file: calls its functions and turns their faults into ReferenceFailed."""

    def __init__(self, path: Path, module: ModuleType) -> None:
        self.path = path
        self.name = path.stem
        self._module = module
        self.precision: str | None = getattr(module, "precision", None)
        self.repeatable = bool(getattr(module, "repeatable", False))
        self.nan_allowed = bool(getattr(module, "nan_allowed", False))

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            found = getattr(self._module, name)(*args, **kwargs)
            return tuple(found) if inspect.isgenerator(found) else found  # a generator raises only when it is read
        except Exception as error:
            raise ReferenceFailed(f"{self.path.name}: {name}() raised {type(error).__name__}: {error}") from error

    def cases(self) -> tuple[Case, ...]:
        """All cases, check cases first. Two of one id, or none, is a fault of the reference."""
        found = tuple(self._call("cases") or ())
        if not all(isinstance(case, Case) for case in found):
            raise ReferenceFailed(f"{self.path.name}: cases() must yield check(...) and bench(...)")
        keys = [(case.kind, case.id) for case in found]
        twins = {key for key in keys if keys.count(key) > 1}
        if twins:
            raise ReferenceFailed(f"{self.path.name}: two cases are named {sorted(twins)[0][1]}")
        return tuple(sorted(found, key=lambda case: case.kind != "check"))

    def inputs(self, case: Case, draw: Any) -> dict[str, Any]:
        """Inputs by name: tensors and Python scalars, in the order of the reference's parameters."""
        found = self._call("inputs", case, draw)
        names = self.parameters()
        if not isinstance(found, dict) or set(found) != set(names):
            raise ReferenceFailed(f"{self.path.name}: inputs() must give exactly {', '.join(names)}")
        return {name: found[name] for name in names}

    def parameters(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(inspect.signature(self._module.reference).parameters)

    def outputs(self, case: Case, inputs: Mapping[str, Any]) -> dict[str, TensorSpec]:
        """Outputs by name, with shape and dtype."""
        declared = self._call("outputs", case)
        if not isinstance(declared, dict) or not declared:
            raise ReferenceFailed(f"{self.path.name}: outputs() must give at least one output by name")
        return {name: _resolved(self.path.name, spec, inputs) for name, spec in declared.items()}

    def truth(self, inputs: Mapping[str, Any], names: Iterable[str]) -> dict[str, "torch.Tensor"]:
        """Call `reference` with the given inputs; its results by output name."""
        return self._named("reference", self._call("reference", **inputs), tuple(names))

    def honest(self, inputs: Mapping[str, Any], names: Iterable[str]) -> dict[str, "torch.Tensor"]:
        """The honest implementation on inputs widened for accumulation: `honest` if given, else `reference`."""
        function = "honest" if hasattr(self._module, "honest") else "reference"
        return self._named(function, self._call(function, **inputs), tuple(names))

    def _named(self, function: str, result: Any, names: tuple[str, ...]) -> dict[str, "torch.Tensor"]:
        results = result if isinstance(result, tuple) else (result,)
        values = result if isinstance(result, dict) else dict(zip(names, results, strict=False))
        whole = isinstance(result, dict) or len(results) == len(names)
        tensors = all(hasattr(value, "shape") and hasattr(value, "dtype") for value in values.values())
        if set(values) != set(names) or not whole or not tensors:
            raise ReferenceFailed(f"{self.path.name}: {function}() must return {', '.join(names)}, each a tensor")
        return values

    def cost(self, case: Case, inputs: Mapping[str, Any], outputs: Mapping[str, TensorSpec]) -> Cost:
        """FLOPs and bytes of a case; a bare number from `cost` is FLOPs."""
        found = self._call("cost", case) if hasattr(self._module, "cost") else 0.0
        if not isinstance(found, Cost | int | float):
            raise ReferenceFailed(f"{self.path.name}: cost() must give FLOPs or a Cost, not {type(found).__name__}")
        cost = found if isinstance(found, Cost) else Cost(float(found))
        if cost.bytes is not None:
            return cost
        read = sum(value.numel() * value.element_size() for value in inputs.values() if hasattr(value, "numel"))
        written = sum(spec.elements * _torch_dtype(spec.dtype).itemsize for spec in outputs.values())
        return Cost(cost.flops, float(read + written))


def load(path: Path) -> Reference:
    """Import a reference file by path. Raises ReferenceFailed with its own error, or for missing functions."""
    name = f"kernelci_reference_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles in a reference look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ReferenceFailed(f"{path.name}: importing it raised {type(error).__name__}: {error}") from error
    missing = [name for name in ("cases", "inputs", "outputs", "reference") if not _is_function(module, name)]
    if missing:
        raise ReferenceFailed(f"{path.name}: defines no function {', '.join(missing)}")
    return Reference(path, module)


def _is_function(module: ModuleType, name: str) -> bool:
    value: Callable[..., Any] | None = getattr(module, name, None)
    return callable(value)


def _resolved(file: str, spec: Any, inputs: Mapping[str, Any]) -> TensorSpec:
    if isinstance(spec, TensorSpec):
        return spec
    if isinstance(spec, Like) and hasattr(inputs.get(spec.name), "shape"):
        source = inputs[spec.name]
        return TensorSpec(tuple(source.shape), str(source.dtype).removeprefix("torch."))
    raise ReferenceFailed(f"{file}: outputs() holds {spec!r}; use like('input') or tensor(shape…, dtype=…)")


def _torch_dtype(name: Any) -> Any:
    import torch

    found = getattr(torch, str(name).removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ReferenceFailed(f"no dtype {name!r}")
    return found
