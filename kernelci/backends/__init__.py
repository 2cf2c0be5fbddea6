"""Backends: how one DSL's kernel becomes machine code without a GPU. Each is a file in this folder, found by its name.

Importing this package, or asking which backends exist, imports no DSL and no torch.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from kernelci.gpus import Gpu
from kernelci.tracing.prelude import TraceAt, Tracing


class Build(msgspec.Struct, frozen=True):
    """One compiled kernel: one specialisation of one device function for one target.

    `config` is readable text: the tuning configuration and what the code is specialised for. `files` maps an extension
    (ttir, ttgir, llir, tir, mlir, ptx, cubin, cu) to content. `grid` and `block` are known where the launch tells them.
    """

    symbol: str
    config: str
    files: dict[str, bytes]
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    dynamic_shared_bytes: int = 0


class CompileFailed(Exception):
    """The DSL refused the kernel: its own message, and the kernel file's line (0 if the DSL names none)."""

    def __init__(self, message: str, line: int = 0, file: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.file = file


class TooMuchShared(Exception):
    """A configuration needs more shared memory for a block than the target has; bytes."""

    def __init__(self, config: str, needed_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{needed_bytes} bytes of shared memory needed, {limit_bytes} there ({config})")
        self.config = config
        self.needed_bytes = needed_bytes
        self.limit_bytes = limit_bytes


class Backend(Protocol):
    """What each file in this folder offers.

    A file may also have `INTERCEPTS = False` (its launches can't be caught: kernels are built where they run),
    `launches(gpu)` (a context that lists the launches under it by name and grid, and compiles nothing), `fill_cache()`
    (builds what the DSL leaves to its first launch) and `traced(tracing)` (a context for trace builds).
    """

    DISTRIBUTIONS: tuple[str, ...]
    """Python distributions whose versions enter a compile cache's key."""

    REUSES_CACHE: bool
    """Whether a launch finds in the DSL's own cache what an earlier process compiled."""

    def environment(self, cache_dir: Path) -> dict[str, str]:
        """Variables to set before the DSL is first imported; caches go below `cache_dir`."""

    def preload(self) -> None:
        """Import what a warm process needs; creates no CUDA context."""

    def describe(self, compiled: object, target: str) -> list[Build]:
        """The builds in an object that a kernel's `compile(case, target)` yielded."""

    def tuned(self, config: int | None) -> "AbstractContextManager[Tuning]":
        """Under it autotuners take this one of their configurations, unmeasured; None lets them tune.

        Where nothing can be measured (the interpreter), None means the first.
        """

    def intercept(self, gpu: Gpu, all_configs: bool) -> AbstractContextManager[list[Build]]:
        """Under it a launch compiles for `gpu.target`, is recorded once per specialisation, and does not happen.

        A configuration that does not fit is dropped and listed in `Builds.notes`; `TooMuchShared` is raised only where
        none fits.

        Raises:
            CompileFailed: the DSL refused the kernel.
            TooMuchShared: no configuration fits into the target's shared memory.
        """


def traced(name: str, tracing: Tracing) -> AbstractContextManager[None]:
    """Under it what the backend compiles and launches is a trace build (docs/trace.md); for the rest of the process.

    Raises:
        NotTraced: the backend has none.
    """
    own = getattr(get(name), "traced", None)
    if own is None:
        raise NotTraced(f"{name} has no trace build")
    return cast("AbstractContextManager[None]", own(tracing))


_TRACING: list[object] = []  # what is never left, so that it outlives the call that began it


def begin_trace(name: str, at: TraceAt, arena: Any) -> None:
    """Make trace builds to this process's end, for the buffer that lies there in the arena. Raises NotTraced."""
    from kernelci.workbench.protocol import TensorPlace

    address = arena.view(TensorPlace(at.offset, (at.size,), (1,), "uint8")).data_ptr()
    begun = traced(name, Tracing(address, at.regions))
    begun.__enter__()
    _TRACING.append(begun)


class NotTraced(Exception):
    """A backend has no trace build."""


class Tuning:
    """What the autotuners of a call had to choose from (the length of the longest list of configurations), and the
    number of the one that the last of them took; -1 where there is none."""

    def __init__(self) -> None:
        self.configs = 0
        self.chosen = -1
        self.said = ""
        """That configuration in words."""


class Builds(list[Build]):
    """What was intercepted: builds, each distinct specialisation once, and the configurations that did not fit."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[TooMuchShared] = []

    def add(self, builds: Iterable[Build]) -> None:
        """Take those that are new: symbol, configuration and machine code tell builds apart."""
        for build in builds:
            if all(_identity(build) != _identity(known) for known in self):
                self.append(build)


def names() -> list[str]:
    """The backends there are: the modules of this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Backend:
    """The backend called `name`; its DSL is imported only when it is used.

    Raises:
        KeyError: there is none.
    """
    if name not in names():
        raise KeyError(f"no backend {name!r}; there are {', '.join(names())}")
    return cast("Backend", importlib.import_module(f"{__name__}.{name}"))


def intercepts(backend: Backend) -> bool:
    """Whether a backend's launches can be caught without a GPU."""
    return bool(getattr(backend, "INTERCEPTS", True))


def _identity(build: Build) -> tuple[str, str, bytes]:
    return (
        build.symbol,
        build.config,
        build.files.get("cubin") or build.files.get("ptx") or build.files.get("cu", b""),
    )
