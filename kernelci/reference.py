"""What a reference file is made of: cases, inputs, outputs, the truth, and its cost.

A reference imports its vocabulary from here (`check`, `bench`, `like`, `tensor`, `alias`, `sizes`, `Budget`); the
referee loads it with `load`. docs/correctness.md says what else a reference can declare. torch is imported only inside
functions, so that the catalog stays light.
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

from kernelci import problems
from kernelci.case import Case, bench, check, torch_dtype
from kernelci.errors import ReferenceFailed

if TYPE_CHECKING:
    import torch

# What a reference file imports from here, and lies elsewhere.
__all__ = ["Case", "ReferenceFailed", "bench", "check"]


class TensorSpec(Struct, frozen=True):
    """Shape and dtype (by its torch name) of a tensor; contiguous, row-major. `alias`: the input whose memory it is."""

    shape: tuple[int, ...]
    dtype: str
    alias: str = ""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class Like(Struct, frozen=True):
    """An output with the shape and dtype of an input."""

    name: str


class Alias(Struct, frozen=True):
    """An output that is an input, changed in place."""

    name: str


def alias(name: str) -> Alias:
    """An output that the kernel leaves in the memory of the input `name`."""
    return Alias(name)


class Sizes(Struct, frozen=True):
    """The values that a size may take: from `low` to `high`, multiples of `multiple`."""

    low: int
    high: int
    multiple: int = 1

    def allow(self, value: int) -> bool:
        """Whether a case may have this size."""
        return self.low <= value <= self.high and value % self.multiple == 0


def sizes(low: int, high: int, multiple: int = 1) -> Sizes:
    """The domain of a size: low to high, both included, and a multiple of `multiple`."""
    return Sizes(low, high, multiple)


class Budget(Struct, frozen=True):
    """Factors over what the honest implementation loses; others than these are shown with every row.

    0 stands for the usual one of the precision: 16 for both in full; 4 for an element and 1.5 for RMSE in low.
    """

    worst: float = 0.0
    rmse: float = 0.0


LAYOUTS = ("offset1", "offset3", "offset7", "strided", "transposed", "expanded", "padded")


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
        self.name: str = getattr(module, "reference_name", path.stem)
        self._module = module
        self.precision: str | None = getattr(module, "precision", None)
        self.repeatable = bool(getattr(module, "repeatable", False))
        self.batch_invariant = bool(getattr(module, "batch_invariant", False))
        self.compares = hasattr(module, "compare")
        self.nan_allowed = bool(getattr(module, "nan_allowed", False))
        self.budget: Any = getattr(module, "budget", Budget())
        self.mutates: tuple[str, ...] = tuple(getattr(module, "mutates", ()))
        self.domain: dict[str, Sizes] = dict(getattr(module, "domain", {}))
        self.layouts = {name: _layouts(kinds) for name, kinds in getattr(module, "layouts", {}).items()}
        self.independent: dict[str, tuple[str, ...]] = dict(getattr(module, "independent", {}))
        self.library: dict[str, Callable[..., Any]] = dict(getattr(module, "library", {}))
        self.notes: tuple[str, ...] = tuple(getattr(module, "notes", ()))
        self.one_shape = bool(getattr(module, "one_shape", False))
        self.unpoked: tuple[str, ...] = tuple(getattr(module, "unpoked", ()))
        self.avoided: tuple[str, ...] = tuple(getattr(module, "avoided", ()))
        self._requires: Any = getattr(module, "requires", ())
        self._forbids: Any = getattr(module, "forbids", ())
        self._check_declarations()

    def _check_declarations(self) -> None:
        names = self.parameters()
        unknown = {*self.mutates, *(name for group in self.independent.values() for name in group)} - set(names)
        kinds = {kind for group in self.layouts.values() for kind in group} - set(LAYOUTS)
        said = ""
        if unknown:
            said = f"{sorted(unknown)[0]!r} is no input; the inputs are {', '.join(names)}"
        elif kinds:
            said = f"no layout {sorted(kinds)[0]!r}; there are offset, {', '.join(LAYOUTS)}"
        elif not all(isinstance(value, Sizes) for value in self.domain.values()):
            said = "domain must give sizes(low, high) for each size"
        elif not all(isinstance(name, str) and callable(function) for name, function in self.library.items()):
            said = "library must map names to functions of the inputs"
        elif not isinstance(self.budget, Budget):
            said = "budget must be a Budget(worst=…, rmse=…)"
        elif self.precision not in (None, "full", "low"):
            said = f"precision is full or low, not {self.precision!r}"
        if said:
            raise ReferenceFailed(f"{self.path.name}: {said}")

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            found = getattr(self._module, name)(*args, **kwargs)
            return tuple(found) if inspect.isgenerator(found) else found  # a generator raises only when it is read
        except Exception as error:
            raise _raised(self.path, f"{name}()", error) from error

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
        found = {name: _resolved(self.path.name, spec, inputs) for name, spec in declared.items()}
        stray = {name for name in found if name in inputs and found[name].alias != name}
        if stray:
            raise ReferenceFailed(f"{self.path.name}: {sorted(stray)[0]} is an input too; declare alias(…)")
        return found

    def truth(self, inputs: Mapping[str, Any], names: Iterable[str]) -> dict[str, "torch.Tensor"]:
        """Call `reference` with the given inputs; its results by output name."""
        return self._named("reference", self._call("reference", **inputs), tuple(names))

    def honest(self, inputs: Mapping[str, Any], names: Iterable[str]) -> dict[str, "torch.Tensor"]:
        """The honest implementation on inputs widened for accumulation: `honest` if given, else `reference`."""
        function = "honest" if hasattr(self._module, "honest") else "reference"
        return self._named(function, self._call(function, **inputs), tuple(names))

    def requires(self, case: Case) -> tuple[str, ...]:
        """What the machine code of a case must have, in the words of `kernelci.dumps.requirements`."""
        return self._words("requires", self._requires, case)

    def forbids(self, case: Case) -> tuple[str, ...]:
        """What the machine code of a case must not have."""
        return self._words("forbids", self._forbids, case)

    def _words(self, name: str, given: Any, case: Case) -> tuple[str, ...]:
        """The same words for all cases, or what a function gives for each."""
        found = self._call(name, case) if callable(given) else given
        words = (found,) if isinstance(found, str) else tuple(found or ())
        if not all(isinstance(word, str) for word in words):
            raise ReferenceFailed(f"{self.path.name}: {name} must be words, or a function of a case that gives words")
        return words

    def expression(self, library: str = "") -> Callable[..., Any]:
        """`reference` itself, or the library call of this name."""
        found: Callable[..., Any] = self.library[library] if library else self._module.reference
        return found

    def compare(self, name: str, actual: "torch.Tensor", oracle: "torch.Tensor", inputs: Mapping[str, Any]) -> Any:
        """What the reference's own `compare` says of an output: None (the usual gates decide), a tensor that is True
        where an element is wrong, or a text that says what is wrong, empty for nothing."""
        if not self.compares:
            return None
        return self._call("compare", name, actual, oracle, inputs)

    def case_of(self, case_id: str) -> Case | None:
        """The case of this name: a declared one, or one of other sizes within the domain, as hidden cases are."""
        for case in self.cases():
            if case.id == case_id:
                return case
        for case in self.cases():
            found = case.resized(case_id)
            if found is not None and self.allows(found):
                return found
        return None

    def allows(self, case: Case) -> bool:
        """Whether the domain allows all sizes of a case; sizes that it does not name are as they are in some case."""
        return all(self.domain[name].allow(value) for name, value in case.values if name in self.domain)

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
        written = sum(spec.elements * torch_dtype(spec.dtype).itemsize for spec in outputs.values())
        return Cost(cost.flops, float(read + written))


def load(path: Path) -> Reference:
    """Import a reference file by path, or a problem in another format. Raises ReferenceFailed with its own error, or
    for missing functions."""
    if path.suffix == ".json":
        from kernelci.problems import flashinfer

        return Reference(path, flashinfer.adapt(path))
    if problems.defined_in(path).is_problem:
        from kernelci.problems import kernelbench

        return Reference(path, kernelbench.adapt(path, lambda: _imported(path)))
    module = _imported(path)
    missing = [name for name in ("cases", "inputs", "outputs", "reference") if not _is_function(module, name)]
    if missing:
        raise ReferenceFailed(f"{path.name}: defines no function {', '.join(missing)}")
    return Reference(path, module)


def _imported(path: Path) -> ModuleType:
    name = f"kernelci_reference_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles in a reference look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _raised(path, "importing it", error) from error
    return module


def _raised(path: Path, what: str, error: Exception) -> ReferenceFailed:
    lines = [frame.lineno for frame in inspect.trace(0) if frame.filename == str(path)]
    where = f" (line {lines[-1]})" if lines else ""
    return ReferenceFailed(f"{path.name}: {what} raised {type(error).__name__}: {error}{where}")


def _is_function(module: ModuleType, name: str) -> bool:
    value: Callable[..., Any] | None = getattr(module, name, None)
    return callable(value)


def _resolved(file: str, spec: Any, inputs: Mapping[str, Any]) -> TensorSpec:
    if isinstance(spec, TensorSpec):
        return spec
    if isinstance(spec, Like | Alias) and hasattr(inputs.get(spec.name), "shape"):
        source = inputs[spec.name]
        shared = spec.name if isinstance(spec, Alias) else ""
        return TensorSpec(tuple(source.shape), str(source.dtype).removeprefix("torch."), shared)
    raise ReferenceFailed(f"{file}: outputs() holds {spec!r}; use like('input') or tensor(shape…, dtype=…)")


def _layouts(kinds: Any) -> tuple[str, ...]:
    """`offset` stands for all three offsets."""
    names = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    offsets = tuple(kind for kind in LAYOUTS if kind.startswith("offset"))
    return tuple(one for name in names for one in (offsets if name == "offset" else (name,)))
