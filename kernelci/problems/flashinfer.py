"""A flashinfer-bench definition as a reference: its workloads are the cases, its code is the truth."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import torch

from kernelci.problems import definitions, safetensors
from kernelci.problems.definitions import Definition, Given, Malformed, Tolerance, Workload, definition, workloads
from kernelci.problems.exact import Exact, widest
from kernelci.problems.offline import NeedsNetwork, offline
from kernelci.problems.origins import TIED, Origin
from kernelci.reference import Case, Cost, ReferenceFailed, TensorSpec

CAP = 10.0  # times a workload's own tolerance: beyond it an element is wrong, whatever share may be
_TRIED = (1, 2, 7, 16)  # sizes of variable axes where there is no workload
_RANGES = {"int8": (-128, 128), "int16": (-1024, 1024), "int32": (-1024, 1024), "int64": (-1024, 1024), "bool": (0, 2)}
_ABOVE = 4  # folders above a definition in which a dataset's root may be


def adapt(path: Path) -> ModuleType:
    """A module of a reference's functions for the definition in `path`. Raises ReferenceFailed."""
    try:
        with offline():
            return Problem(path).module()
    except NeedsNetwork as error:
        raise ReferenceFailed(f"{path.name}: needs the network ({error}); nothing is fetched for a problem") from error
    except Malformed as error:
        raise ReferenceFailed(f"{path.name}: {error}") from error


class Problem:
    """A definition with its workloads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._definition: Definition = definition(path)
        self._workloads = workloads(path) or _tried(self._definition)
        self._code = ModuleType(f"kernelci_definition_{path.stem}")
        try:
            exec(compile(self._definition.reference, f"{path.name}:reference", "exec"), vars(self._code))
        except Exception as error:
            raise ReferenceFailed(f"{path.name}: its reference raised {type(error).__name__}: {error}") from error
        if not callable(getattr(self._code, "run", None)):
            raise Malformed("its reference defines no function run")
        tensors = [*self._definition.inputs.values(), *self._definition.outputs.values()]
        kinds = [tensor.dtype for tensor in tensors if tensor.shape is not None]
        unknown = [kind for kind in kinds if not isinstance(getattr(torch, kind, None), torch.dtype)]
        if unknown:
            raise Malformed(f"dtype {unknown[0]!r} is not supported")
        self._dtype = definitions.main_dtype(self._definition)

    def module(self) -> ModuleType:
        """The functions that `kernelci.reference.Reference` asks for."""
        made = ModuleType(self._code.__name__)
        parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in self._definition.inputs]

        def reference(**inputs: Any) -> Any:
            with Exact(widest(inputs.values())), torch.no_grad():
                found = self._code.run(*[inputs[name] for name in self._definition.inputs])
            return self._tensors(found)

        reference.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        vars(made).update(
            cases=self._cases, inputs=self._inputs, outputs=self._outputs, cost=self._cost, reference=reference,
            notes=self._notes(), one_shape=True, avoided=self._avoided(), unpoked=self._unpoked(),
            reference_name=self._definition.name,
        )  # fmt: skip
        if any(workload.tolerance for workload in self._workloads):
            vars(made)["compare"] = self._compare
        return made

    def _tensors(self, found: Any) -> Any:
        """Results by name; numbers become tensors."""
        names = list(self._definition.outputs)
        if not isinstance(found, dict):
            found = dict(zip(names, found if isinstance(found, tuple | list) else (found,), strict=True))
        return {
            name: value if isinstance(value, torch.Tensor) else torch.tensor(value) for name, value in found.items()
        }

    def _cases(self) -> Iterator[Case]:
        """Each workload, to be checked and to be timed."""
        if not self._workloads:
            raise Malformed("there are no workloads, and the numbers among its inputs must come from one")
        for case, _ in definitions.cases(self._definition, self._workloads):
            yield case
            yield msgspec.structs.replace(case, kind="bench")

    def _inputs(self, case: Case, draw: Any) -> dict[str, Any]:
        workload = _of(case)
        sizes = self._definition.sizes(workload.axes)
        custom = self._custom(workload, sizes, draw)
        made: dict[str, Any] = {}
        for name, tensor in self._definition.inputs.items():
            given = workload.inputs.get(name, Given("random"))
            if tensor.shape is None:
                made[name] = given.value
                continue
            shape = tuple(sizes[axis] for axis in tensor.shape)
            dtype = self._as_run(tensor.dtype, case)
            if given.type == "random":
                made[name] = _random(tensor.dtype).draw(draw, shape, dtype)
            elif draw.device == "meta":
                made[name] = torch.empty(shape, dtype=dtype, device="meta")
            else:
                value = custom[name] if given.type == "custom" else self._stored(given)
                if tuple(value.shape) != shape:
                    raise Malformed(f"input {name} has shape {tuple(value.shape)}, and the workload says {shape}")
                made[name] = value.to(draw.device, dtype).contiguous()
        return made

    def _custom(self, workload: Workload, sizes: dict[str, int], draw: Any) -> dict[str, torch.Tensor]:
        """What the definition's own function makes, under a secret seed."""
        wanted = [name for name, given in workload.inputs.items() if given.type == "custom"]
        if not wanted or draw.device == "meta":
            return {}
        function = getattr(self._code, self._definition.custom_inputs_entrypoint or "", None)
        if function is None:
            raise Malformed(f"input {wanted[0]} is custom, and custom_inputs_entrypoint names no function")
        scalars = {name: given.value for name, given in workload.inputs.items() if given.type == "scalar"}
        seed = int(draw.uniform(1, dtype=torch.float64) * 2**52)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made: dict[str, torch.Tensor] = function({**sizes, **scalars}, torch.device("cpu"))
        return made

    def _stored(self, given: Given) -> torch.Tensor:
        """A tensor of a safetensors file, whose path begins at the root of its dataset."""
        for folder in self._path.resolve().parents[:_ABOVE]:
            if (folder / given.path).is_file():
                return safetensors.read(folder / given.path, given.tensor_key)
        raise Malformed(f"no file {given.path} in the folders above")

    def _outputs(self, case: Case) -> dict[str, TensorSpec]:
        sizes = self._definition.sizes(_of(case).axes)
        return {
            name: TensorSpec(
                tuple(sizes[axis] for axis in tensor.shape or ()),
                str(self._as_run(tensor.dtype, case)).removeprefix("torch."),
            )
            for name, tensor in self._definition.outputs.items()
        }

    def _as_run(self, dtype: str, case: Case) -> torch.dtype:
        named: torch.dtype = getattr(torch, dtype)
        return case.dtype if dtype == self._dtype else named

    def _cost(self, case: Case) -> Cost:
        """One operation for each element of the outputs: a definition does not say what it takes."""
        return Cost(float(sum(spec.elements for spec in self._outputs(case).values())))

    def _compare(self, name: str, actual: torch.Tensor, oracle: torch.Tensor, inputs: Any) -> Any:
        """By the first tolerance that a workload gives. Integers and what overflows are left to the usual gates."""
        allowed = next(workload.tolerance for workload in self._workloads if workload.tolerance)
        if not actual.is_floating_point() or not bool(torch.isfinite(oracle.to(actual.dtype)).all()):
            return None
        return outside(actual.double(), oracle.double(), allowed)

    def _unpoked(self) -> tuple[str, ...]:
        kinds = {name: given.type for workload in self._workloads for name, given in workload.inputs.items()}
        return tuple(name for name, kind in kinds.items() if kind in ("safetensors", "custom"))

    def _avoided(self) -> tuple[str, ...]:
        """Where an output is an index, draws with ties."""
        kinds = [getattr(torch, tensor.dtype) for tensor in self._definition.outputs.values()]
        return TIED if any(not kind.is_floating_point for kind in kinds) else ()

    def _notes(self) -> tuple[str, ...]:
        first = self._workloads[0].inputs if self._workloads else {}
        found = [f"input {name}: {first.get(name, Given('random')).type}" for name in self._definition.inputs]
        allowed = next((workload.tolerance for workload in self._workloads if workload.tolerance), None)
        told = f"judged by the workload's own tolerance, {allowed}, and at most {CAP:g} times that for any element"
        return (*found, *((told,) if allowed else ()))


def outside(actual: torch.Tensor, oracle: torch.Tensor, allowed: Tolerance) -> Any:
    """What a tolerance says: a text where too few elements are within it, else the elements that are far beyond it."""
    error = (actual - oracle).abs().nan_to_num(nan=float("inf"))
    bound = allowed.max_atol + allowed.max_rtol * oracle.abs()
    share = float((error <= bound).double().mean()) if error.numel() else 1.0
    if share < allowed.required_matched_ratio:
        return f"{share:.2%} of the elements are within the tolerance, and {allowed.required_matched_ratio:.2%} must be"
    cap = bound * CAP if allowed.max_error_cap is None else torch.full_like(bound, allowed.max_error_cap)
    return error > cap


def _of(case: Case) -> Workload:
    text = dict(case.values)["_workload"]
    return msgspec.json.decode(text, type=Workload)


def _random(dtype: str) -> Origin:
    if dtype in _RANGES:
        return Origin("randint", low=_RANGES[dtype][0], high=_RANGES[dtype][1])
    return Origin("randn")


def _tried(found: Definition) -> list[Workload]:
    """A few sizes, where nobody has said which; none where there are numbers among the inputs."""
    if any(tensor.shape is None for tensor in found.inputs.values()):
        return []
    free = [name for name, axis in found.axes.items() if axis.type == "var"]
    sizes = [dict.fromkeys(free, size) for size in (_TRIED if free else (1,))]
    return [Workload(f"size {number}", axes, {}) for number, axes in enumerate(sizes)]
