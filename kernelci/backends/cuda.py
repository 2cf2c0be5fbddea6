"""CUDA C++ through cuda-core without a GPU: NVRTC compiles for the target, and launches are recorded."""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelci.backends import Build, Builds, CompileFailed, Tuning
from kernelci.gpus import Gpu
from kernelci.tracing.prelude import Tracing, announced, prelude
from kernelci.workbench import cudacore, toolkit

REUSES_CACHE = False
DISTRIBUTIONS = ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-cccl")
_TEXT_SECTION = re.compile(rb"\x00\.text\.([\w$]+)(?=\x00)")
_ERROR = re.compile(r"^(.+?)\((\d+)\): (?:catastrophic )?error", re.MULTILINE)


def environment(cache_dir: Path) -> dict[str, str]:
    """CUDA_HOME for kernels that look for headers; NVRTC itself needs nothing."""
    return {**toolkit.environment(), "CUDA_VISIBLE_DEVICES": ""}


def preload() -> None:
    """Import torch, cuda-core and its bindings."""
    import cuda.bindings.driver
    import cuda.bindings.nvrtc
    import cuda.bindings.runtime
    import cuda.core  # noqa: F401


def tuned(config: int | None) -> contextlib.AbstractContextManager[Tuning]:
    """Nothing to choose here."""
    return contextlib.nullcontext(Tuning())


def describe(compiled: object, target: str) -> list[Build]:
    """The builds in a `cuda.core.ObjectCode` (cubin or PTX): one for each kernel in it.

    Raises:
        CompileFailed: it is something else.
    """
    if not (hasattr(compiled, "code") and hasattr(compiled, "code_type")):
        raise CompileFailed(f"compile() yielded {type(compiled).__name__}, not a cuda.core ObjectCode")
    files = _files(compiled)
    names = {symbol: name for name, symbol in (getattr(compiled, "symbol_mapping", None) or {}).items()}
    symbols = [symbol.decode() for symbol in _TEXT_SECTION.findall(files.get("cubin", b""))]
    symbols = symbols or re.findall(r"\.visible \.entry ([\w$]+)", files.get("ptx", b"").decode())
    return [Build(symbol, cudacore.text(names.get(symbol, "")), files) for symbol in dict.fromkeys(symbols)]


@contextlib.contextmanager
def intercept(gpu: Gpu, all_configs: bool = False) -> Iterator[Builds]:
    """See `Backend.intercept`. What kernel files took from `cuda.core` by name is replaced in them too."""
    import cuda.bindings.driver
    import cuda.bindings.runtime
    import cuda.core

    builds = Builds()

    def record(kernel: cudacore.Kernel, grid: cudacore.Size, block: cudacore.Size, shared_bytes: int) -> None:
        builds.add([Build(kernel.symbol, kernel.name, _files(kernel.code), grid, block, shared_bytes)])

    stand_in = cudacore.StandIn(gpu, record)
    replaced = [(cuda.core, stand_in.core()), (cuda.bindings.driver, stand_in.driver())]
    with _replaced([*replaced, (cuda.bindings.runtime, stand_in.runtime())]):
        try:
            yield builds
        except Exception as error:
            if not isinstance(error, CompileFailed) and (found := _ERROR.search(str(error))):  # NVRTC's log
                raise CompileFailed(str(error), int(found[2]), found[1]) from error
            raise


@contextlib.contextmanager
def traced(tracing: Tracing) -> Iterator[None]:
    """See `backends.traced`: sources that NVRTC gets begin with the trace's header."""
    import cuda.core
    from cuda.bindings import nvrtc

    make, create = cuda.core.Program, nvrtc.nvrtcCreateProgram

    def program(code: Any, code_type: str, options: Any = None) -> Any:
        if str(code_type).lower() == "c++":
            code = prelude(tracing, _name(options)) + cudacore.text(code)
        return make(code, code_type, options)

    def created(source: bytes, name: bytes, *rest: Any) -> Any:
        return create(prelude(tracing, cudacore.text(name)).encode() + source, name, *rest)

    with announced(tracing), _replaced([(cuda.core, {"Program": program}), (nvrtc, {"nvrtcCreateProgram": created})]):
        yield


def _name(options: Any) -> str:
    """What NVRTC would call the source."""
    name = options.get("name") if isinstance(options, dict) else getattr(options, "name", None)
    return cudacore.text(name or "default_program")


@contextlib.contextmanager
def _replaced(replacements: list[tuple[ModuleType, dict[str, Any]]]) -> Iterator[None]:
    """Set attributes of modules, also where a user's module holds the original under any name."""
    undo: list[tuple[ModuleType, str, Any]] = []
    originals = {
        id(original): values[name]
        for module, values in replacements
        for name in values
        if (original := getattr(module, name, None)) is not None
    }
    try:
        for module in [*(module for module, _ in replacements), *_users()]:
            for name, held in [(name, held) for name, held in vars(module).items() if id(held) in originals]:
                undo.append((module, name, held))
                setattr(module, name, originals[id(held)])
        yield
    finally:
        for module, name, held in undo:
            setattr(module, name, held)


def _users() -> Iterator[ModuleType]:
    """Kernel files, as the loader marks them: they took names from `cuda.core` when they were imported."""
    yield from (module for module in list(sys.modules.values()) if "__kernelci__" in getattr(module, "__dict__", ()))


def _files(code: Any) -> dict[str, bytes]:
    if isinstance(code, cudacore.Code):
        return dict(code.files)
    content = code.code
    return {str(code.code_type): content if isinstance(content, bytes) else Path(content).read_bytes()}
