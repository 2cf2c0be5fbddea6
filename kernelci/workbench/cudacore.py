"""Stand-ins for cuda-core and the driver's bindings: NVRTC compiles for a target, launches go to a callback."""

import ctypes
import itertools
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from kernelci.gpus import Gpu

Size = tuple[int, int, int]
Record = Callable[["Kernel", Size, Size, int], None]


class _Capability(NamedTuple):
    major: int
    minor: int


class Code:
    """Stands in for `ObjectCode`: the real one, whose kernels are looked up without loading it."""

    def __init__(self, real: Any, owner: "StandIn", files: dict[str, bytes]) -> None:
        self.real, self.owner, self.files = real, owner, files

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def get_kernel(self, name: str | bytes) -> "Kernel":
        """The kernel under its C++ name expression, or under its symbol."""
        mapping = {text(key): text(value) for key, value in (self.real.symbol_mapping or {}).items()}
        return Kernel(self, mapping.get(text(name), text(name)), text(name))


class Kernel:
    """Stands in for `Kernel`; the handle is a number by which a launch through the driver finds it again."""

    _handles = itertools.count(4096, 16)

    def __init__(self, code: Code, symbol: str, name: str) -> None:
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

    wait = close = record = lambda self, *args: None


class _Anything:
    """Takes any attribute, any call, any index: where nothing depends on the answer."""

    def __getattr__(self, name: str) -> Any:
        return _Anything()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return _Anything()

    def __getitem__(self, index: object) -> Any:
        return self


class StandIn:
    """One interception: the GPU, and the kernels that were looked up; `record` hears of each launch."""

    def __init__(self, gpu: Gpu, record: Record) -> None:
        self.gpu = gpu
        self.record = record
        self.kernels: dict[int, Kernel] = {}

    def core(self) -> dict[str, Any]:
        """Replacements in `cuda.core`, by name."""
        from cuda.core import ObjectCode, Program, ProgramOptions

        def options(*args: Any, **kwargs: Any) -> Any:
            if not args:
                kwargs["arch"] = kwargs.get("arch") or self.gpu.target
            return ProgramOptions(*args, **kwargs)

        def program(code: Any, code_type: str, options_given: Any = None) -> Any:
            return _Program(Program(code, code_type, options_given or options()), self, code)

        def loaded(kind: str) -> Callable[..., Code]:
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

    def _code(self, real: Any, kind: str) -> Code:
        return Code(real, self, {kind: bytes(real.code)} if isinstance(real.code, bytes) else {})

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
        if isinstance(kernel, Kernel):
            self.record(kernel, _triple(config.grid), _triple(config.block), int(config.shmem_size or 0))

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

        return _defaults(driver, r"cu[A-Z]\w+", ok) | {
            "cuLaunchKernel": launch_kernel,
            "cuLaunchKernelEx": launch_kernel_ex,
            "cuTensorMapEncodeTiled": lambda *args: (ok, driver.CUtensorMap()),
            "cuTensorMapEncodeIm2col": lambda *args: (ok, driver.CUtensorMap()),
            "cuGetProcAddress": _answer(ok, _NOTHING_ADDRESS, driver.CUdriverProcAddressQueryResult(0)),
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

    def _launched(self, function: Any, grid: Any, block: Any, shared: Any) -> None:
        if kernel := self.kernels.get(int(function)):
            self.record(kernel, _triple(tuple(grid)), _triple(tuple(block)), int(shared))

    def runtime(self) -> dict[str, Any]:
        """Replacements in `cuda.bindings.runtime`."""
        from cuda.bindings import runtime

        ok = runtime.cudaError_t.cudaSuccess
        return _defaults(runtime, r"cuda[A-Z]\w+", ok) | {
            "cudaGetDeviceCount": _answer(ok, 1),
            "cudaDeviceGetAttribute": lambda attribute, device: (ok, _attribute(self.gpu, attribute.name)),
        }


class _Program:
    """Stands in for `Program`: the real one, which also gives its PTX."""

    def __init__(self, real: Any, owner: StandIn, source: Any) -> None:
        self.real, self.owner, self.source = real, owner, source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def compile(self, target_type: str, *args: Any, **kwargs: Any) -> Code:
        """Compile as `Program.compile` does, and keep source and PTX."""
        code = self.real.compile(target_type, *args, **kwargs)
        files = {"cu": text(self.source).encode(), str(target_type): bytes(code.code)}
        if ptx := ptx_of(self.real):
            files.setdefault("ptx", ptx)
        return Code(code, self.owner, files)


def ptx_of(program: Any) -> bytes:
    """What NVRTC made on the way to the cubin; empty if this version keeps none."""
    from cuda.bindings import nvrtc

    try:
        error, size = nvrtc.nvrtcGetPTXSize(program.handle)
        text = bytes(size)
        (worse,) = nvrtc.nvrtcGetPTX(program.handle, text)
    except Exception:  # another compiler than NVRTC is behind the program
        return b""
    return b"" if int(error) or int(worse) else text.rstrip(b"\0")


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
    """A device attribute by the driver's name (CU_DEVICE_ATTRIBUTE_WARP_SIZE) or the runtime's."""
    plain = re.sub("[^a-z0-9]", "", name.lower().removeprefix("cu_device_attribute_").removeprefix("cudadevattr"))
    if plain.startswith("computecapability"):
        return gpu.capability["minor" in plain]
    for known, field in _ATTRIBUTES.items():
        if plain == known.lower():
            return int(getattr(gpu, field))
    return 1


def _defaults(bindings: Any, pattern: str, ok: Any) -> dict[str, Any]:
    """Every function of a bindings module answers success and a zero for each value that its documentation returns."""
    answers = {}
    for name in [name for name in dir(bindings) if re.fullmatch(pattern, name)]:
        text = getattr(bindings, name).__doc__ or ""
        if callable(getattr(bindings, name)) and "Returns\n" in text:
            returned = re.findall(r"^\s*\w+ : ", text.split("Returns\n")[-1].split("See Also")[0], re.MULTILINE)
            answers[name] = _answer(ok, *[0] * len(returned))
    return answers


# What a driver function that is looked up by name does here: nothing, successfully, whatever its arguments.
_nothing = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
_NOTHING_ADDRESS = ctypes.cast(_nothing, ctypes.c_void_p).value


def _answer(*values: Any) -> Callable[..., tuple[Any, ...]]:
    return lambda *args, **kwargs: values


def _triple(size: Any) -> Size:
    given = (size,) if isinstance(size, int) else tuple(size or ())
    x, y, z = (*given, 1, 1, 1)[:3]
    return (int(x), int(y), int(z))


def text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
