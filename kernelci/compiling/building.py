"""Build one kernel for one case and one GPU: through its own `compile`, else by calling its entry on stand-ins."""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType

import msgspec
import torch

from kernelci.backends import Backend, Build, Builds, CompileFailed, TooMuchShared, intercepts
from kernelci.gpus import Gpu
from kernelci.workbench import raising, standin

_ANSI = re.compile(r"\x1b\[[0-9;]*m")

Scalar = bool | int | float | str | None


class StandInSpec(msgspec.Struct, frozen=True):
    """A tensor argument without values; `dtype` is torch's name (`bfloat16`), strides and offset are in elements."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    offset: int = 0


class BuildResult(msgspec.Struct, frozen=True):
    """All that one case compiles to, and a note for each configuration that needs more shared memory than there is."""

    builds: tuple[Build, ...]
    notes: tuple[str, ...] = ()


def build(
    module: ModuleType,
    entry: str,
    case: object,
    arguments: Mapping[str, StandInSpec | Scalar],
    gpu: Gpu,
    backend: Backend,
    all_configs: bool = False,
) -> BuildResult:
    """Compile what `entry` would launch for `case` on `gpu`; `arguments` are its inputs and outputs by name.

    A case that launches nothing (size 0) gives no builds.

    Raises:
        CompileFailed: the DSL, or the kernel's host code, refused; names the line.
        TooMuchShared: no configuration fits.
        NeedsData: host code asks for a tensor's values (`kernelci.workbench.standin`).
    """
    if not intercepts(backend):
        return BuildResult(())  # to be imported is all that it needs
    own = getattr(module, "compile", None)
    _forget(module)
    try:
        with standin.gpu(gpu):
            if callable(own):
                result = _own(own, case, gpu, backend)
            else:
                result = _called(module, entry, case, arguments, gpu, backend, all_configs)
    except (CompileFailed, TooMuchShared, standin.NeedsData, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        file, line = _place(error)
        raise CompileFailed(_ANSI.sub("", raising.told(error)), line, file) from error
    _check_target(result, gpu)
    _check_shared(result, gpu)
    return result


def launches(
    module: ModuleType,
    entry: str,
    cases: Iterable[tuple[object, Mapping[str, StandInSpec | Scalar]]],
    gpu: Gpu,
    backend: Backend,
) -> list[list[tuple[str, tuple[int, ...]]]]:
    """The launches of each case by name and grid, compiled or not; none of a case whose host code fails, and none where
    a backend can't tell without compiling."""
    told = getattr(backend, "launches", None)
    found: list[list[tuple[str, tuple[int, ...]]]] = []
    if told is None:
        return found
    for case, arguments in cases:
        found.append([])
        with contextlib.suppress(Exception), standin.gpu(gpu), told(gpu) as seen:
            _enter(module, entry, case, arguments)
            found[-1] += seen
    return found


def _place(error: BaseException) -> tuple[str, int]:
    """Where it went wrong: what a DSL's own error says, else the innermost cause that leads to the kernel's line."""
    file, line = getattr(error, "filename", None), getattr(error, "line", None)
    if isinstance(file, str) and isinstance(line, int):
        return file, line
    if error.__cause__ is not None and (found := _place(error.__cause__))[0]:
        return found
    return standin.where(error.__traceback__)


def _forget(module: ModuleType) -> None:
    """Empty the kernel file's own caches: what they hold may have been compiled for another target."""
    for value in list(vars(module).values()):
        if callable(clear := getattr(value, "cache_clear", None)):
            clear()


def _check_target(result: BuildResult, gpu: Gpu) -> None:
    for made in result.builds:
        found = re.search(rb"^\.target\s+(sm_\d+)", made.files.get("ptx", b""), re.MULTILINE)
        if found and found[1].decode() != gpu.target.rstrip("abcdefghijklmnopqrstuvwxyz"):
            raise CompileFailed(f"asked for {gpu.target}, {made.symbol} was compiled for {found[1].decode()}")


def _check_shared(result: BuildResult, gpu: Gpu) -> None:
    for made in result.builds:
        if made.dynamic_shared_bytes > gpu.shared_memory_per_block_optin_bytes:
            raise TooMuchShared(made.config, made.dynamic_shared_bytes, gpu.shared_memory_per_block_optin_bytes)


def _own(compile_case: Callable[..., object], case: object, gpu: Gpu, backend: Backend) -> BuildResult:
    builds = Builds()
    with backend.intercept(gpu, False):
        yielded = compile_case(case, gpu.target)
        # While a generator waits at its yield, the files of what it yielded are still there.
        for compiled in yielded if isinstance(yielded, Iterable) else [yielded]:
            builds.add(backend.describe(compiled, gpu.target))
    return BuildResult(tuple(builds))


def _called(
    module: ModuleType,
    entry: str,
    case: object,
    arguments: Mapping[str, StandInSpec | Scalar],
    gpu: Gpu,
    backend: Backend,
    all_configs: bool,
) -> BuildResult:
    with backend.intercept(gpu, all_configs) as builds:
        _enter(module, entry, case, arguments)
    return BuildResult(tuple(builds), tuple(str(note) for note in getattr(builds, "notes", ())))


def _enter(module: ModuleType, entry: str, case: object, arguments: Mapping[str, StandInSpec | Scalar]) -> None:
    """Call the entry on stand-ins."""
    function = getattr(module, entry)
    taken = inspect.signature(function).parameters  # an entry that returns its outputs takes none of them
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
    prepare = getattr(module, "prepare", None)
    if callable(prepare):
        prepare(case)
    function(**{name: _stand_in(value) for name, value in arguments.items() if anything or name in taken})


def _stand_in(value: StandInSpec | Scalar) -> object:
    if isinstance(value, StandInSpec):
        return standin.tensor(value.shape, getattr(torch, value.dtype), value.strides, value.offset)
    return value
