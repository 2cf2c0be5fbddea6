"""Triton without a GPU: a stand-in driver says what the target is, and its launcher records instead of launching."""

import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from kernelci.backends import Build, Builds, CompileFailed, TooMuchShared, Tuning
from kernelci.gpus import Gpu
from kernelci.tracing.prelude import Tracing, announced
from kernelci.workbench import proton

REUSES_CACHE = True
DISTRIBUTIONS = ("triton",)


def environment(cache_dir: Path) -> dict[str, str]:
    """Triton's own cache goes below `cache_dir`; the interpreter is off, since it would compile nothing."""
    return {"TRITON_CACHE_DIR": str(cache_dir / "triton"), "TRITON_INTERPRET": "0", "CUDA_VISIBLE_DEVICES": ""}


def preload() -> None:
    """Import torch, Triton, its compiler, and what names regions in kernels."""
    import triton.compiler
    import triton.language
    import triton.profiler.language
    import triton.testing  # noqa: F401
    from triton import knobs

    if knobs.runtime.interpret:
        proton.silence()


@contextlib.contextmanager
def tuned(config: int | None) -> Iterator[Tuning]:
    """See `Backend.tuned`."""
    from triton import knobs
    from triton.runtime.autotuner import Autotuner

    tuning, run = Tuning(), Autotuner.run
    chosen = 0 if config is None and knobs.runtime.interpret else config

    def pinned(self: Any, *args: Any, **kwargs: Any) -> Any:
        known = self.configs
        tuning.configs = max(tuning.configs, len(known))
        if chosen is None:
            result = run(self, *args, **kwargs)
            tuning.chosen, tuning.said = known.index(self.best_config), str(self.best_config)
            return result
        tuning.chosen = chosen % len(known)
        tuning.said = str(known[tuning.chosen])
        self.configs = [known[tuning.chosen]]  # a single one is taken without measuring it
        try:
            return run(self, *args, **kwargs)
        finally:
            self.configs = known

    with mock.patch.object(Autotuner, "run", pinned):
        yield tuning


def describe(compiled: object, target: str) -> list[Build]:
    """The build in a `triton.compiler.CompiledKernel`.

    Raises:
        CompileFailed: it is something else.
    """
    if not (hasattr(compiled, "asm") and hasattr(compiled, "metadata")):
        raise CompileFailed(f"compile() yielded {type(compiled).__name__}, not a Triton CompiledKernel")
    return [_build(compiled, "", None)]


@contextlib.contextmanager
def intercept(gpu: Gpu, all_configs: bool = False) -> Iterator[Builds]:
    """See `Backend.intercept`. Autotuned kernels compile their first configuration that fits, or all of them."""
    from triton.runtime import jit
    from triton.runtime.autotuner import Autotuner

    builds = Builds()
    stand_in = _Driver(gpu)
    seen: set[int] = set()
    with (
        _active(stand_in),
        mock.patch.object(jit.JITFunction, "run", _recording(jit.JITFunction.run, stand_in, builds, seen)),
        mock.patch.object(Autotuner, "run", _choosing(builds, all_configs)),
        mock.patch.object(Autotuner, "_bench", return_value=[1.0, 1.0, 1.0]),
    ):
        yield builds


@contextlib.contextmanager
def _active(stand_in: "_Driver") -> Iterator[None]:
    """Under it the stand-in is Triton's driver; then everything is as before."""
    from triton.runtime import driver

    before = dict(vars(driver))
    driver.set_active(stand_in)
    try:
        yield
    finally:
        vars(driver).clear()
        vars(driver).update(before)


@contextlib.contextmanager
def traced(tracing: Tracing) -> Iterator[None]:
    """See `Backend.traced`: what Proton's scopes record is copied into the trace's buffer after each launch."""
    with announced(tracing), proton.traced(tracing):
        yield


@contextlib.contextmanager
def launches(gpu: Gpu) -> Iterator[list[tuple[str, tuple[int, ...]]]]:
    """Under it launches tell their name and grid, under each configuration of an autotuner; nothing is compiled."""
    from triton.runtime import jit
    from triton.runtime.autotuner import Autotuner

    seen: list[tuple[str, tuple[int, ...]]] = []

    def told(self: Any, *args: Any, grid: Any = (), **kwargs: Any) -> None:
        known = {one.name: one.default for one in self.params if one.has_default}
        sizes = grid({**known, **dict(zip(self.arg_names, args, strict=False)), **kwargs}) if callable(grid) else grid
        seen.append((self.__name__, tuple(int(size) for size in sizes)))

    with (
        _active(_Driver(gpu)),
        mock.patch.object(jit.JITFunction, "run", told),
        mock.patch.object(Autotuner, "run", _choosing(Builds(), True)),
    ):
        yield seen


_LAUNCHERS: list[tuple[object, object]] = []  # sources and metadata of what was intercepted in this process


def fill_cache() -> None:
    """Build what Triton leaves to the C compiler where it first launches, so that its cache holds that too: its bridge
    to the driver, and up to 3.8 a launcher for each signature. Nothing is lost where the driver's library is missing.
    """
    from triton.backends.nvidia import driver

    with contextlib.suppress(Exception):
        driver.CudaUtils()
    for source, metadata in _LAUNCHERS:
        with contextlib.suppress(Exception):
            driver.CudaLauncher(source, metadata)


class _Driver:
    """Answers for the GPU as `triton.runtime.driver.active` does; loads and launches nothing."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.grid: tuple[int, int, int] | None = None
        properties = {
            "max_shared_mem": gpu.shared_memory_per_block_optin_bytes,
            "max_num_regs": gpu.registers_per_block,
            "multiprocessor_count": gpu.sm_count,
            "warpSize": gpu.warp_size,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }
        self.utils = SimpleNamespace(
            get_device_properties=lambda device: dict(properties),
            get_current_device=lambda: 0,
            set_current_device=lambda device: None,
            get_device_capability=lambda device=0: gpu.capability,
            get_default_stream=lambda device=0: 0,
            is_stream_capturing=lambda stream=0: False,
            load_binary=lambda name, binary, shared, device: (1, 1, 0, 0, gpu.max_threads_per_block),
            unload_module=lambda module: None,
            cuOccupancyMaxActiveClusters=lambda *args: gpu.sm_count,
            set_printf_fifo_size=lambda size: None,
            fill_tma_descriptor=lambda *args: None,
            fill_tma_descriptor_tiled=lambda *args: None,
            fill_tma_descriptor_im2col=lambda *args: None,
        )

    def launcher_cls(self, source: object, metadata: object) -> Callable[..., None]:
        """A launcher that keeps the grid."""
        _LAUNCHERS.append((source, metadata))

        def launch(x: int, y: int, z: int, *args: object) -> None:
            self.grid = (x, y, z)

        return launch

    def get_current_target(self) -> Any:
        """The target; Triton itself adds the suffix (sm_90a, sm_100a)."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.gpu.capability_number, self.gpu.warp_size)

    def get_active_torch_device(self) -> Any:
        """The device of tensors that Triton's own helpers allocate."""
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """`torch.cuda`, itself stood in for."""
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Nothing is timed."""
        return lambda call, quantiles=(0.5, 0.2, 0.8), **options: [1.0] * len(quantiles)

    def get_empty_cache_for_benchmark(self) -> Any:
        """A small tensor in place of one that flushes the L2."""
        import torch

        return torch.empty(1, device="cuda")

    def map_python_to_cpp_type(self, name: str) -> str:
        """Only a real launcher's source needs it."""
        return name

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """(major, minor)."""
        return self.gpu.capability

    def clear_cache(self, cache: object) -> None:
        """Nothing to clear."""

    def get_current_device(self) -> int:
        """Device 0."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int = 0) -> int:
        """The default stream."""
        return 0

    def assemble_tensormap_to_arg(self, tensormaps: object, args: Any) -> Any:
        """Triton 3.4 packs descriptors here."""
        return args

    def allocate_default_profile_scratch(self, *args: object) -> None:
        """No scratch for a launch that does not happen."""


def _recording(run: Callable[..., Any], driver: _Driver, builds: Builds, seen: set[int]) -> Callable[..., Any]:
    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) not in seen:  # what was compiled for another target, or loaded on a real device, must not be found
            seen.add(id(self))
            self.device_caches.clear()
        driver.grid = None
        with _translated(self, kwargs, driver.gpu):
            kernel = run(self, *args, **kwargs)
        if kernel is not None:
            builds.add([_build(kernel, _specialisation(kernel), driver.grid)])
        return kernel

    return recorded


def _choosing(builds: Builds, all_configs: bool) -> Callable[..., Any]:
    """Replace the search by a walk through the configurations, as pruned by the kernel's own hooks."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        result, fitted, refused = None, False, []
        for config in self.prune_configs(kwargs):
            try:
                result = _run_config(self, config, args, kwargs)
            except TooMuchShared as error:
                refused.append(TooMuchShared(str(config), error.needed_bytes, error.limit_bytes))
                continue
            self.best_config, fitted = config, True
            if not all_configs:
                break
        self.nargs = None
        if not fitted and refused:
            raise min(refused, key=lambda one: one.needed_bytes)
        builds.notes.extend(refused)
        return result

    return run


def _run_config(tuner: Any, config: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if config.pre_hook is not None:
        config.pre_hook({**tuner.nargs, **kwargs, **config.all_kwargs()})
    return tuner.fn.run(*args, **kwargs, **config.all_kwargs())


@contextlib.contextmanager
def _translated(function: Any, options: dict[str, Any], gpu: Gpu) -> Iterator[None]:
    """Turn Triton's errors into ours, with the innermost line of the kernel's own file."""
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import OutOfResources

    try:
        yield
    except OutOfResources as error:
        config = ", ".join(f"{k}={v}" for k, v in options.items() if isinstance(v, int | str) and k not in _NOT_CONFIG)
        if error.name != "shared memory":
            raise CompileFailed(f"{error} ({config})", *_start(function)) from error
        raise TooMuchShared(config, int(error.required), int(error.limit)) from error
    except CompilationError as error:
        raise CompileFailed(str(error), *_line_of(error, function)) from error
    except RuntimeError as error:
        if type(error).__module__.startswith("triton") or "PassManager" in str(error) or "ptxas" in str(error):
            raise CompileFailed(str(error), *_start(function)) from error
        raise


_NOT_CONFIG = {"grid", "warmup", "debug"}


def _line_of(error: Any, function: Any) -> tuple[int, str]:
    """The line where compilation stopped: Triton counts from the `def` of the function it was in."""
    line, file = _start(function)
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    inner = error.__cause__
    if inner is not None and getattr(inner, "src", None) and getattr(inner, "node", None) is not None:
        return _line_of(inner, function)  # the call site wraps the error of the function it calls
    text = Path(file).read_text(encoding="utf-8") if file and os.path.exists(file) else ""
    begin = text.find(source) if source else -1
    if begin < 0 or node is None:
        return line, file
    return text.count("\n", 0, begin) + int(node.lineno), file


def _start(function: Any) -> tuple[int, str]:
    inner = function
    while not inspect.isfunction(inner) and hasattr(inner, "fn"):
        inner = inner.fn
    return (inner.__code__.co_firstlineno, inner.__code__.co_filename) if inspect.isfunction(inner) else (0, "")


def _build(kernel: Any, config: str, grid: tuple[int, int, int] | None) -> Build:
    metadata = kernel.metadata
    files = {ext: text if isinstance(text, bytes) else str(text).encode() for ext, text in dict(kernel.asm).items()}
    threads = int(metadata.num_warps) * int(getattr(metadata, "warp_size", 32))
    ptx = files.get("ptx", b"")
    if required := re.search(rb"\.(?:reqntid|maxntid)\s+(\d+)", ptx):  # warp specialisation adds warps
        threads = int(required[1])
    return Build(metadata.name, config or _options(metadata), files, grid, (threads, 1, 1), int(metadata.shared))


def _options(metadata: Any) -> str:
    return f"num_warps={metadata.num_warps}, num_stages={metadata.num_stages}, num_ctas={metadata.num_ctas}"


def _specialisation(kernel: Any) -> str:
    """Constants, argument types (with D where divisible by 16) and launch options."""
    source = kernel.src
    names = source.fn.arg_names
    constants = {names[path[0]]: value for path, value in source.constants.items() if len(path) == 1}
    divisible = {path[0] for path, attributes in source.attrs.items() if attributes}
    types = {
        name: f"{kind}{':16' if at in divisible else ''}" for at, (name, kind) in enumerate(source.signature.items())
    }
    shown = [f"{name}={constants[name]}" for name in names if name in constants]
    shown += [f"{name}: {types[name]}" for name in names if name not in constants]
    return ", ".join([*shown, _options(kernel.metadata)])
