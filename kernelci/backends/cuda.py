"""CUDA C++ through cuda-core without a GPU: NVRTC compiles for the target, and launches are recorded."""

import contextlib
import itertools
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from kernelci.backends import Build, Builds, CompileFailed
from kernelci.gpus import Gpu
from kernelci.workbench import toolkit

DISTRIBUTIONS = ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-cccl")
_TEXT_SECTION = re.compile(rb"\x00\.text\.([\w$]+)(?=\x00)")
_ERROR = re.compile(r"^(.+?)\((\d+)\): (?:catastrophic )?error", re.MULTILINE)
_SITE = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), sysconfig.get_path("stdlib")})


def environment(cache_dir: Path) -> dict[str, str]:
    """CUDA_HOME for kernels that look for headers; NVRTC itself needs nothing."""
    return {**toolkit.environment(), "CUDA_VISIBLE_DEVICES": ""}


def preload() -> None:
    """Import torch, cuda-core and its bindings."""
    import cuda.bindings.driver
    import cuda.bindings.nvrtc
    import cuda.bindings.runtime
    import cuda.core  # noqa: F401

    from kernelci.workbench import standin

    standin.preload()


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
    return [Build(symbol, _text(names.get(symbol, "")), files) for symbol in dict.fromkeys(symbols)]


@contextlib.contextmanager
def intercept(gpu: Gpu, all_configs: bool = False) -> Iterator[Builds]:
    """See `Backend.intercept`. What kernel files took from `cuda.core` by name is replaced in them too."""
    import cuda.bindings.driver
    import cuda.bindings.runtime
    import cuda.core

    stand_in = _StandIn(gpu)
    with contextlib.ExitStack() as stack:
        for name, value in stand_in.core().items():
            original = getattr(cuda.core, name, None)
            for module in [cuda.core, *_users()]:
                for key in [key for key, held in vars(module).items() if held is original and held is not None]:
                    stack.enter_context(mock.patch.object(module, key, value))
        for binding, answers in ((cuda.bindings.driver, stand_in.driver()), (cuda.bindings.runtime, stand_in.runtime())):
            for name, value in answers.items():
                for module in [binding, *_users()]:
                    if hasattr(module, name):
                        stack.enter_context(mock.patch.object(module, name, value))
        yield stand_in.builds


def _users() -> Iterator[ModuleType]:
    """Modules that are neither installed nor of the standard library: the kernel file and what it imports beside it."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and not file.startswith(_SITE) and not (module.__name__ or "").startswith("kernelci."):
            yield module


class _Capability(NamedTuple):
    major: int
    minor: int


class _Code:
    """Stands in for `ObjectCode`: the real one, whose kernels are looked up without loading it."""

    def __init__(self, real: Any, owner: "_StandIn", files: dict[str, bytes]) -> None:
        self.real, self.owner, self.files = real, owner, files

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def get_kernel(self, name: str | bytes) -> "_Kernel":
        """The kernel under its C++ name expression, or under its symbol."""
        mapping = {_text(key): _text(value) for key, value in (self.real.symbol_mapping or {}).items()}
        return _Kernel(self, mapping.get(_text(name), _text(name)), _text(name))


class _Kernel:
    """Stands in for `Kernel`; the handle is a number by which a launch through the driver finds it again."""

    _handles = itertools.count(4096, 16)

    def __init__(self, code: _Code, symbol: str, name: str) -> None:
        self.code, self.symbol, self.name = code, symbol, name
        self.number = next(self._handles)
        code.owner.kernels[self.number] = self
        self.attributes = _Anything()
        gpu = code.owner.gpu
        self.occupancy = SimpleNamespace(
            max_active_blocks_per_multiprocessor=lambda *args, **kwargs: 1,
            max_active_clusters=lambda *args, **kwargs: gpu.sm_count,
            available_dynamic_shared_memory_per_block=lambda *args: gpu.shared_memory_per_block_optin_bytes,
        )

    @property
    def handle(self) -> Any:
        """A `CUkernel` with this kernel's number."""
        from cuda.bindings import driver

        return driver.CUkernel(self.number)

    _handle = handle


class _LaunchConfig:
    """Stands in for `LaunchConfig`, whose check of clusters asks a driver."""

    def __init__(
        self, grid: Any = None, cluster: Any = None, block: Any = None, shmem_size: int | None = None, **more: Any
    ) -> None:
        self.cluster = _triple(cluster) if cluster is not None else None
        self.grid, self.block, self.shmem_size = _triple(grid), _triple(block), int(shmem_size or 0)
        self.__dict__.update(more)


class _Stream:
    """Stands in for `Stream`."""

    handle = 0

    @staticmethod
    def from_handle(handle: object) -> "_Stream":
        """Any handle is this stream's."""
        return _Stream()

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 0)

    def sync(self) -> None:
        """Nothing to wait for."""

    wait = close = record = lambda self, *args: None  # noqa: E731


class _Anything:
    """Takes any attribute, any call, any index: where nothing depends on the answer."""

    def __getattr__(self, name: str) -> Any:
        return _Anything()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return _Anything()

    def __getitem__(self, index: object) -> Any:
        return self


class _StandIn:
    """One interception: the GPU, the kernels that were looked up, the builds of those that were launched."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.builds = Builds()
        self.kernels: dict[int, _Kernel] = {}

    def core(self) -> dict[str, Any]:
        """Replacements in `cuda.core`, by name."""
        from cuda.core import ObjectCode, Program, ProgramOptions

        def options(*args: Any, **kwargs: Any) -> Any:
            if not args:
                kwargs["arch"] = kwargs.get("arch") or self.gpu.target
            return ProgramOptions(*args, **kwargs)

        def program(code: Any, code_type: str, options_given: Any = None) -> Any:
            return _Program(Program(code, code_type, options_given or options()), self, code)

        def loaded(kind: str) -> Callable[..., _Code]:
            make = getattr(ObjectCode, f"from_{kind}")
            return lambda module, **kwargs: self._code(make(module, **kwargs), kind)

        codes = SimpleNamespace(**{f"from_{kind}": loaded(kind) for kind in ("cubin", "ptx", "fatbin", "ltoir")})
        return {
            "Device": lambda *args: self.device,
            "Program": program,
            "ProgramOptions": options,
            "ObjectCode": codes,
            "LaunchConfig": _LaunchConfig,
            "Stream": _Stream,
            "launch": self.launch,
        }

    def _code(self, real: Any, kind: str) -> _Code:
        return _Code(real, self, {kind: bytes(real.code)} if isinstance(real.code, bytes) else {})

    @property
    def device(self) -> SimpleNamespace:
        """Stands in for `Device()`."""
        gpu = self.gpu
        answers = SimpleNamespace(
            multiprocessor_count=gpu.sm_count,
            max_shared_memory_per_block=gpu.shared_memory_per_block_bytes,
            max_shared_memory_per_block_optin=gpu.shared_memory_per_block_optin_bytes,
            max_shared_memory_per_multiprocessor=gpu.shared_memory_per_sm_bytes,
            max_registers_per_block=gpu.registers_per_block,
            max_registers_per_multiprocessor=gpu.registers_per_sm,
            max_threads_per_block=gpu.max_threads_per_block,
            max_threads_per_multiprocessor=gpu.max_threads_per_sm,
            l2_cache_size=gpu.l2_bytes,
            warp_size=gpu.warp_size,
            compute_capability_major=gpu.capability[0],
            compute_capability_minor=gpu.capability[1],
        )
        return SimpleNamespace(
            name=gpu.name,
            device_id=0,
            arch=str(gpu.capability_number),
            compute_capability=_Capability(*gpu.capability),
            properties=answers,
            default_stream=_Stream(),
            set_current=lambda *args: None,
            create_stream=lambda *args, **kwargs: _Stream(),
            create_event=lambda *args, **kwargs: _Anything(),
            sync=lambda: None,
        )

    def launch(self, stream: object, config: Any, kernel: Any, *arguments: object) -> None:
        """Record in place of `cuda.core.launch`."""
        if isinstance(kernel, _Kernel):
            self.record(kernel, _triple(config.grid), _triple(config.block), int(config.shmem_size or 0))

    def record(self, kernel: _Kernel, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int) -> None:
        """Keep the build of one launched kernel."""
        self.builds.add([Build(kernel.symbol, kernel.name, _files(kernel.code), grid, block, shared)])

    def driver(self) -> dict[str, Any]:
        """Replacements in `cuda.bindings.driver`: each answers success and what kernels need to go on."""
        from cuda.bindings import driver

        ok = driver.CUresult.CUDA_SUCCESS

        def launch_kernel(function: Any, *numbers: Any) -> tuple[Any]:
            self._launched(function, numbers[:3], numbers[3:6], numbers[6])
            return (ok,)

        def launch_kernel_ex(config: Any, function: Any, *rest: Any) -> tuple[Any]:
            grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
            block = (config.blockDimX, config.blockDimY, config.blockDimZ)
            self._launched(function, grid, block, config.sharedMemBytes)
            return (ok,)

        answers: dict[str, Any] = {name: _answer(ok) for name in _SILENT}
        answers |= {
            "cuLaunchKernel": launch_kernel,
            "cuLaunchKernelEx": launch_kernel_ex,
            "cuTensorMapEncodeTiled": lambda *args: (ok, driver.CUtensorMap()),
            "cuTensorMapEncodeIm2col": lambda *args: (ok, driver.CUtensorMap()),
            "cuDeviceGet": lambda ordinal: (ok, driver.CUdevice(ordinal)),
            "cuCtxGetDevice": _answer(ok, 0),
            "cuDeviceGetCount": _answer(ok, 1),
            "cuDriverGetVersion": _answer(ok, 13000),
            "cuCtxGetCurrent": lambda: (ok, driver.CUcontext(1)),
            "cuDevicePrimaryCtxRetain": lambda device: (ok, driver.CUcontext(1)),
            "cuDeviceGetAttribute": lambda attribute, device: (ok, _attribute(self.gpu, attribute.name)),
            "cuKernelGetFunction": lambda kernel: (ok, driver.CUfunction(int(kernel))),
            "cuOccupancyMaxActiveBlocksPerMultiprocessor": _answer(ok, 1),
            "cuOccupancyMaxActiveClusters": _answer(ok, self.gpu.sm_count),
        }
        return answers

    def _launched(self, function: Any, grid: Any, block: Any, shared: Any) -> None:
        if kernel := self.kernels.get(int(function)):
            self.record(kernel, _triple(tuple(grid)), _triple(tuple(block)), int(shared))

    def runtime(self) -> dict[str, Any]:
        """Replacements in `cuda.bindings.runtime`."""
        from cuda.bindings import runtime

        ok = runtime.cudaError_t.cudaSuccess
        return {
            "cudaGetDevice": _answer(ok, 0),
            "cudaSetDevice": _answer(ok),
            "cudaGetDeviceCount": _answer(ok, 1),
            "cudaStreamSynchronize": _answer(ok),
            "cudaDeviceSynchronize": _answer(ok),
            "cudaMemsetAsync": _answer(ok),
            "cudaDeviceGetAttribute": lambda attribute, device: (ok, _attribute(self.gpu, attribute.name)),
        }


class _Program:
    """Stands in for `Program`: the real one, which also gives its PTX."""

    def __init__(self, real: Any, owner: _StandIn, source: Any) -> None:
        self.real, self.owner, self.source = real, owner, source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def compile(self, target_type: str, *args: Any, **kwargs: Any) -> _Code:
        """Compile as `Program.compile` does; NVRTC's complaint becomes `CompileFailed` with the source's line."""
        try:
            code = self.real.compile(target_type, *args, **kwargs)
        except Exception as error:
            found = _ERROR.search(str(error))
            raise CompileFailed(str(error), int(found[2]) if found else 0, found[1] if found else "") from error
        files = {"cu": _text(self.source).encode(), str(target_type): bytes(code.code)}
        if ptx := _ptx(self.real):
            files.setdefault("ptx", ptx)
        return _Code(code, self.owner, files)


def _ptx(program: Any) -> bytes:
    """What NVRTC made on the way to the cubin; empty if this version keeps none."""
    from cuda.bindings import nvrtc

    try:
        error, size = nvrtc.nvrtcGetPTXSize(program.handle)
        text = bytes(size)
        (worse,) = nvrtc.nvrtcGetPTX(program.handle, text)
    except Exception:  # another compiler than NVRTC is behind the program
        return b""
    return b"" if int(error) or int(worse) else text.rstrip(b"\0")


_SILENT = (
    "cuInit cuCtxSetCurrent cuCtxSynchronize cuStreamSynchronize cuKernelSetAttribute cuFuncSetAttribute cuFuncSetCacheConfig "
    "cuKernelSetCacheConfig cuMemsetD8Async cuMemsetD16Async cuMemsetD32Async cuMemcpyAsync cuMemcpyDtoDAsync cuStreamWaitEvent"
).split()
_ATTRIBUTES = {
    "MultiProcessorCount": "sm_count",
    "MaxSharedMemoryPerBlock": "shared_memory_per_block_bytes",
    "MaxSharedMemoryPerBlockOptin": "shared_memory_per_block_optin_bytes",
    "MaxSharedMemoryPerMultiprocessor": "shared_memory_per_sm_bytes",
    "MaxThreadsPerBlock": "max_threads_per_block",
    "MaxThreadsPerMultiProcessor": "max_threads_per_sm",
    "MaxRegistersPerBlock": "registers_per_block",
    "MaxRegistersPerMultiprocessor": "registers_per_sm",
    "L2CacheSize": "l2_bytes",
    "WarpSize": "warp_size",
}


def _attribute(gpu: Gpu, name: str) -> int:
    """A device attribute by the driver's name (CU_DEVICE_ATTRIBUTE_WARP_SIZE) or the runtime's (cudaDevAttrWarpSize)."""
    plain = re.sub("[^a-z0-9]", "", name.lower().removeprefix("cu_device_attribute_").removeprefix("cudadevattr"))
    if plain.startswith("computecapability"):
        return gpu.capability["minor" in plain]
    for known, field in _ATTRIBUTES.items():
        if plain == known.lower():
            return int(getattr(gpu, field))
    return 1


def _answer(*values: Any) -> Callable[..., tuple[Any, ...]]:
    return lambda *args, **kwargs: values


def _files(code: Any) -> dict[str, bytes]:
    if isinstance(code, _Code):
        return dict(code.files)
    content = code.code
    return {str(code.code_type): content if isinstance(content, bytes) else Path(content).read_bytes()}


def _triple(size: Any) -> tuple[int, int, int]:
    given = (size,) if isinstance(size, int) else tuple(size or ())
    x, y, z = (*given, 1, 1, 1)[:3]
    return (int(x), int(y), int(z))


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
