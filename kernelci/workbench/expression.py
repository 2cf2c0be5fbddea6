"""What a user would call instead of a kernel, as an entry like a kernel's (in a process of its own, beside no kernel).

It is the reference file's `reference`, as torch runs it or compiled by torch, or one of the library calls that the file
names, on inputs in the case's own dtypes. Outputs have the declared dtypes.
"""

import contextlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from kernelci.reference import Reference, TensorSpec, load
from kernelci.workbench.arena import dtype_of
from kernelci.workbench.draws import Sketch

EAGER, COMPILE, LIBRARY = "eager", "compile", "library:"
ENTRY = "baseline"
_IMPORTED = (
    "torch._inductor.compile_fx",
    "torch._inductor.async_compile",
    "torch._inductor.codecache",
    "torch._inductor.lowering",
    "torch._inductor.runtime.triton_heuristics",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._dynamo.backends.inductor",
    "torch.fx.experimental.validator",
    "torch.distributed.tensor.experimental",
)


def environment(cache: Path) -> dict[str, str]:
    """The variables of a process that compiles expressions, which keeps what it compiles below `cache`: C++ headers,
    which torch would keep elsewhere, are not compiled ahead."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    }


def source(reference: Path, name: str) -> str:
    """The Python file that lies beside a copy of the reference file and offers this expression as its entry."""
    return (
        "from pathlib import Path\n"
        "from kernelci.workbench.expression import Expression\n"
        f"{ENTRY} = Expression(Path(__file__).with_name({reference.name!r}), {name!r})\n"
        f"prepare = {ENTRY}.prepare\n"
    )


class Expression:
    """Callable with the reference's inputs by name, after `prepare(case)`; returns outputs by name."""

    def __init__(self, path: Path, name: str) -> None:
        self._reference = load(path)
        self._name = name
        self._function = self._reference.expression(name.removeprefix(LIBRARY) if LIBRARY in name else "")
        self._run: Callable[..., dict[str, torch.Tensor]] | None = None
        parameters = self._reference.parameters()
        kind = inspect.Parameter.KEYWORD_ONLY
        self.__signature__ = inspect.Signature([inspect.Parameter(each, kind) for each in parameters])

    def prepare(self, case: Any) -> None:
        """Get ready for a case, which is compiled when it is first called."""
        run = casting(self._function, _outputs(self._reference, case))
        self._run = compiled(run) if self._name == COMPILE else run

    def __call__(self, **inputs: Any) -> dict[str, torch.Tensor]:
        assert self._run is not None
        return self._run(**inputs)


def casting(function: Callable[..., Any], outputs: Mapping[str, TensorSpec]) -> Callable[..., dict[str, torch.Tensor]]:
    """The function with its results by name, in the dtypes that are declared."""
    dtypes = {name: dtype_of(spec.dtype) for name, spec in outputs.items()}

    def run(**inputs: Any) -> dict[str, torch.Tensor]:
        result = function(**inputs)
        if not isinstance(result, dict):
            result = dict(zip(dtypes, result if isinstance(result, tuple) else (result,), strict=True))
        return {name: result[name].to(dtype) for name, dtype in dtypes.items()}

    return run


def compiled(run: Callable[..., dict[str, torch.Tensor]]) -> Callable[..., dict[str, torch.Tensor]]:
    """By torch.compile as a user would call it, for these shapes alone; within this process and its folder.

    What is compiled may be found in a cache, and so may which of several configurations is the fastest.
    """
    import torch._inductor.config as settings

    settings.compile_threads = 1  # else it starts processes of its own
    torch._dynamo.reset()
    made: Callable[..., dict[str, torch.Tensor]] = torch.compile(run, dynamic=False)
    return made


def warm() -> None:
    """Make the imports and hashes that compiling takes. Nothing is compiled: that would open a context on a GPU."""
    for name in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for module, key in (("codecache", "torch_key"), ("runtime.triton_compat", "triton_key")):
        with contextlib.suppress(ImportError, AttributeError):  # names that no documentation promises
            getattr(importlib.import_module(f"torch._inductor.{module}"), key)()


def _outputs(reference: Reference, case: Any) -> dict[str, TensorSpec]:
    return reference.outputs(case, reference.inputs(case, Sketch()))
