"""CuTe DSL without a GPU: the architecture is given, PTX and cubin are kept, a compiled function's call is recorded."""

import contextlib
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from kernelci.backends import Build, Builds, CompileFailed, Tuning
from kernelci.gpus import Gpu
from kernelci.tracing.prelude import Tracing, announced
from kernelci.workbench import iket

REUSES_CACHE = False
DISTRIBUTIONS = ("nvidia-cutlass-dsl", "nvidia-cutlass-dsl-libs-base", "nvidia-cutlass-dsl-libs-core", "apache-tvm-ffi")
_ENTRY = re.compile(r"\.visible \.entry ([\w$]+)\s*\(")
_THREADS = re.compile(r"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")

_SHARED_FIELD = re.compile(
    r"(%\w+) = llvm\.getelementptr %\w+\[0, 2\] : [^\n]*\(array<3 x i32>, array<3 x i32>, i64, ptr, ptr, i32\)"
)


def environment(cache_dir: Path) -> dict[str, str]:
    """CuTe DSL's cache and its dumps below `cache_dir`."""
    return {
        "CUTE_DSL_CACHE_DIR": str(cache_dir / "cutedsl"),
        "CUTE_DSL_DUMP_DIR": str(cache_dir / "cutedsl"),
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


def preload() -> None:
    """Import torch and CuTe DSL."""
    import cutlass.cute
    import cutlass.cute.runtime

    with contextlib.suppress(ImportError):  # needs apache-tvm-ffi; without it no kernel can use that calling convention
        import cutlass.cutlass_dsl.tvm_ffi_provider  # noqa: F401


def tuned(config: int | None) -> contextlib.AbstractContextManager[Tuning]:
    """Nothing to choose here."""
    return contextlib.nullcontext(Tuning())


def describe(compiled: object, target: str) -> list[Build]:
    """The builds in what `cute.compile` returns: one for each device function.

    Raises:
        CompileFailed: it is something else, or was compiled without keeping PTX and cubin.
    """
    cubin, ptx = getattr(compiled, "__cubin__", None), getattr(compiled, "__ptx__", None)
    if not isinstance(cubin, bytes) or not isinstance(ptx, str):
        raise CompileFailed(f"{type(compiled).__name__} holds no cubin: compile with --keep-ptx --keep-cubin")
    return _builds(compiled, ptx, cubin)


@contextlib.contextmanager
def intercept(gpu: Gpu, all_configs: bool = False) -> Iterator[Builds]:
    """See `Backend.intercept`."""
    from cutlass.base_dsl.jit_executor import JitCompiledFunction, JitExecutor

    preload()
    builds = Builds()

    def call(function: Any, *args: Any, **kwargs: Any) -> None:
        builds.add(describe(function, gpu.target))

    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(_settings(gpu.target, folder))
        stack.enter_context(_driver(gpu))
        for kind in _subclasses(JitCompiledFunction):
            for name in ("__call__", "run_compiled_program"):
                if name in vars(kind):
                    stack.enter_context(mock.patch.object(kind, name, call))
            if "to" in vars(kind):
                stack.enter_context(mock.patch.object(kind, "to", lambda function, device=None: function))
        stack.enter_context(mock.patch.object(JitExecutor, "__call__", return_value=None))
        yield builds


@contextlib.contextmanager
def traced(tracing: Tracing) -> Iterator[None]:
    """See `backends.traced`: the ranges of CuTe DSL's own tracer become marks, and each kernel gets a track."""
    with announced(tracing), iket.traced(tracing):
        yield


@contextlib.contextmanager
def _settings(target: str, folder: str) -> Iterator[None]:
    """Architecture and kept files, in every DSL object that is there."""
    from cutlass.cutlass_dsl import CuTeDSL

    wanted = {
        "_arch": target,
        "keep_ptx": True,
        "keep_cubin": True,
        "keep_ir_clean": True,
        "dump_dir": folder,
        "lineinfo": True,
    }
    variables = CuTeDSL._get_dsl().envar
    before = {name: getattr(variables, name) for name in wanted}
    for name, value in wanted.items():
        setattr(variables, name, value)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Cache is disabled")  # for every compilation that keeps its PTX
            yield
    finally:
        for name, value in before.items():
            setattr(variables, name, value)


@contextlib.contextmanager
def _driver(gpu: Gpu) -> Iterator[None]:
    """What CuTe DSL asks the driver for: the capability and the occupancy helper's answers."""
    import cutlass.utils

    answers: dict[str, Callable[..., Any]] = {
        "get_device_multiprocessor_count": lambda self, *args: gpu.sm_count,
        "get_l2_cache_size_in_bytes": lambda self, *args: gpu.l2_bytes,
        "get_max_active_clusters": lambda self, size=1, *args, **kwargs: gpu.sm_count // max(int(size), 1),
        "__init__": lambda self, *args, **kwargs: None,
    }
    with contextlib.ExitStack() as stack:
        for name, answer in answers.items():
            if hasattr(cutlass.utils.HardwareInfo, name):
                stack.enter_context(mock.patch.object(cutlass.utils.HardwareInfo, name, answer))
        yield


def _subclasses(kind: Any) -> Iterator[Any]:
    yield kind
    for derived in kind.__subclasses__():
        yield from _subclasses(derived)


def _builds(compiled: Any, ptx: str, cubin: bytes) -> list[Build]:
    files = {"ptx": ptx.encode(), "cubin": cubin, **_ir(compiled)}
    found = []
    shared = _shared_bytes(compiled)
    starts = list(_ENTRY.finditer(ptx))
    for at, entry in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(ptx)
        threads = _THREADS.search(ptx, entry.end(), end)
        block = (int(threads[1]), int(threads[2] or 1), int(threads[3] or 1)) if threads else None
        found.append(Build(entry[1], str(compiled.function_name), files, None, block, shared))
    return found


def _ir(compiled: Any) -> dict[str, bytes]:
    mlir = getattr(compiled, "__mlir__", None)
    return {"mlir": mlir.encode()} if isinstance(mlir, str) else {}


def _shared_bytes(compiled: Any) -> int:
    """The largest dynamic shared memory of the launches in the host code: field 2 of a launch's configuration."""
    text = str(getattr(compiled, "ir_module", "") or "")
    largest = 0
    for field in _SHARED_FIELD.finditer(text):
        stored = re.compile(rf"llvm\.store (%\w+), {re.escape(field[1])} :").search(text, field.end())
        if stored is None:
            continue
        constant = re.compile(rf"{re.escape(stored[1])} = llvm\.mlir\.constant\((\d+) : i64\)")
        values = constant.findall(text, 0, field.start())  # names are unique in a function only: the nearest one counts
        largest = max(largest, int(values[-1]) if values else 0)
    return largest
