"""TileLang without a GPU: the target is given, nvcc comes from NVIDIA's wheels, a kernel's call is recorded."""

import contextlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from kernelci.backends import Build, Builds, CompileFailed, Tuning
from kernelci.gpus import Gpu
from kernelci.tracing.lowered import marked
from kernelci.tracing.prelude import Tracing, announced, definitions
from kernelci.workbench import toolkit

REUSES_CACHE = True
DISTRIBUTIONS = (
    "tilelang",
    "apache-tvm-ffi",
    "nvidia-cuda-nvcc",
    "nvidia-nvvm",
    "nvidia-cuda-crt",
    "nvidia-cuda-runtime",
)
TIMEOUT_S = 300.0
_KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\(([^)]*)\)\s*)?(\w+)\s*\([^)]*\)\s*\{')
_SOURCE_FILE = re.compile(
    rb'(\.file\s+\d+\s+")[^"]*tvm_kernels[^"]*\.cu'
)  # a temporary name: the same kernel must give the same bytes
_made: dict[str, dict[str, bytes]] = {}  # machine code by CUDA source, as TileLang's own compilations passed by


def environment(cache_dir: Path) -> dict[str, str]:
    """TileLang's cache below `cache_dir`, NVIDIA's compiler, no progress prints, and no search for a GPU at import."""
    own = {
        "TILELANG_CACHE_DIR": str(cache_dir / "tilelang"),
        "TILELANG_PRINT_ON_COMPILATION": "0",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    return {**toolkit.environment(), **own}


def preload() -> None:
    """Import torch and TileLang."""
    import tilelang
    import tilelang.language  # noqa: F401


def tuned(config: int | None) -> contextlib.AbstractContextManager[Tuning]:
    """Nothing to choose here."""
    return contextlib.nullcontext(Tuning())


def describe(compiled: object, target: str) -> list[Build]:
    """The builds in a `tilelang.jit.JITKernel`: one for each device function.

    Raises:
        CompileFailed: it is something else, or nvcc refuses its source.
    """
    if not hasattr(compiled, "get_kernel_source"):
        raise CompileFailed(f"compile() yielded {type(compiled).__name__}, not a TileLang JITKernel")
    return _builds(compiled, target)


@contextlib.contextmanager
def intercept(gpu: Gpu, all_configs: bool = False) -> Iterator[Builds]:
    """See `Backend.intercept`. An autotuned kernel compiles its first configuration."""
    from tilelang.contrib import nvcc
    from tilelang.jit import JITImpl
    from tilelang.jit.kernel import JITKernel
    from tvm.target import Target

    builds = Builds()

    def call(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        builds.add(_builds(kernel, gpu.target))
        return _outputs(kernel, args)

    with (
        mock.patch.object(nvcc, "compile_cuda", _keeping_ptx(nvcc.compile_cuda)),
        mock.patch.object(JITKernel, "__call__", call),
        mock.patch.object(JITImpl, "__call__", _forgetting(JITImpl.__call__)),
        Target({"kind": "cuda", "arch": gpu.target}),
    ):
        yield builds


@contextlib.contextmanager
def traced(tracing: Tracing) -> Iterator[None]:
    """See `backends.traced`: sources that nvcc gets begin with the trace's header, and each kernel with a track."""
    import tilelang
    from tilelang.cache.cuda_binary_cache import CUDABinaryCache
    from tilelang.contrib import nvcc

    tilelang.disable_cache()  # for good: what is compiled now is good for this process alone
    with (
        announced(tracing),
        mock.patch.object(nvcc, "compile_cuda", _marking(nvcc.compile_cuda, tracing)),
        mock.patch.object(CUDABinaryCache, "load", return_value=None),
        mock.patch.object(CUDABinaryCache, "save"),
    ):
        yield


def _marking(compile_cuda: Callable[..., Any], tracing: Tracing) -> Callable[..., Any]:
    def compiled(code: str, *rest: Any, **more: Any) -> Any:
        return compile_cuda(definitions(tracing) + marked(code, tracing.regions), *rest, **more)

    return compiled


def _forgetting(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function remembers its kernels by arguments alone: for another target they must not be found."""
    seen: set[int] = set()

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) not in seen:
            seen.add(id(self))
            self._kernel_cache.clear()
            self._call_form_cache.clear()
        return call(self, *args, **kwargs)

    return called


def _keeping_ptx(compile_cuda: Callable[..., Any]) -> Callable[..., Any]:
    """Compile to a cubin in nvcc's own two steps, so that the PTX between them is kept and costs nothing."""

    def compiled(
        code: str, target_format: str = "ptx", arch: Any = None, options: Any = None, *rest: Any, **more: Any
    ) -> Any:
        if target_format != "cubin" or not isinstance(arch, list) or not str(arch[0]).startswith("-arch=sm_"):
            return compile_cuda(code, target_format, arch, options, **more)
        options = [options] if isinstance(options, str) else list(options or [])
        assembler = [flag for flag in options if flag.startswith("--ptxas-options=")]
        ptx = bytes(compile_cuda(code, "ptx", arch, [flag for flag in options if flag not in assembler], **more))
        ptx = _SOURCE_FILE.sub(rb"\1kernel.cu", ptx)
        cubin = _assemble(ptx, arch[0].removeprefix("-arch="), [flag.split("=", 1)[1] for flag in assembler])
        _made[code] = {"ptx": ptx, "cubin": cubin}
        return bytearray(cubin)

    return compiled


def _assemble(ptx: bytes, target: str, flags: list[str]) -> bytes:
    home = toolkit.home("bin/ptxas")
    if home is None:
        raise CompileFailed("ptxas not found; install kernelci[tilelang]")
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_bytes(ptx)
        command = [
            str(home / "bin" / "ptxas"),
            f"-arch={target}",
            "-O3",
            "-lineinfo",
            *flags,
            str(source),
            "-o",
            str(result),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode != 0:
            raise CompileFailed(f"ptxas: {(done.stderr or done.stdout).strip()}")
        return result.read_bytes()


def _builds(kernel: Any, target: str) -> list[Build]:
    source = str(kernel.get_kernel_source())
    files = {"tir": str(kernel.prim_func).encode(), "cu": source.encode(), **_machine_code(kernel, source)}
    host = _host(kernel)
    if host:
        files["host.cc"] = host.encode()
    config = ", ".join(f"{name}={value}" for name, value in (getattr(kernel, "config", None) or {}).items())
    return [
        Build(symbol, config, files, None, _block(bounds), _shared_bytes(host, symbol, source))
        for bounds, symbol in _KERNEL.findall(source)
    ]


def _machine_code(kernel: Any, source: str) -> dict[str, bytes]:
    if source not in _made:  # TileLang took it from its cache, or it was compiled before `intercept`
        from tilelang.cache.cuda_binary_cache import CUDABinaryCache
        from tilelang.contrib import nvcc
        from tilelang.cuda import backend

        patched = nvcc.compile_cuda if nvcc.compile_cuda.__module__ == __name__ else _keeping_ptx(nvcc.compile_cuda)
        with (
            mock.patch.object(nvcc, "compile_cuda", patched),
            mock.patch.object(CUDABinaryCache, "load", return_value=None),
        ):
            try:
                backend.tilelang_callback_cuda_compile(source, kernel.target, _pass_configs(kernel))
            except RuntimeError as error:
                raise CompileFailed(str(error)) from error
    return _made[source]


def _pass_configs(kernel: Any) -> dict[Any, Any]:
    from tilelang.transform import PassConfigKey

    configs = dict(kernel.pass_configs or {})
    if kernel.compile_flags:
        configs[PassConfigKey.TL_DEVICE_COMPILE_FLAGS] = list(kernel.compile_flags)
    return configs


def _host(kernel: Any) -> str:
    try:
        return str(kernel.get_host_source() or "")
    except Exception:  # not every execution backend keeps it; it is shown, never needed
        return ""


def _block(bounds: str) -> tuple[int, int, int] | None:
    threads = bounds.split(",")[0].strip()
    return (int(threads), 1, 1) if threads.isdigit() else None


def _shared_bytes(host: str, symbol: str, source: str) -> int:
    """The host code packs the launch's arguments; the last one is the dynamic shared memory, if the kernel has any."""
    call = re.search(rf"TVMFFIFunctionCall\({symbol}_packed, \(TVMFFIAny\*\) ?stack_ffi_any, (\d+),", host)
    if call is None or "extern __shared__" not in source:
        return 0
    last = re.findall(rf"stack_ffi_any\)\[{int(call[1]) - 1}\]\.v_int64\) = \(\(int64_t\)(\d+)\)", host[: call.start()])
    return int(last[-1]) if last else 0


def _outputs(kernel: Any, args: tuple[Any, ...]) -> Any:
    """Stand-ins for what a kernel with `out_idx` allocates and returns; symbolic sizes come from the inputs."""
    import torch

    indices = [index % len(kernel.params) for index in kernel.out_idx or []]
    inputs = iter(args)
    sizes: dict[str, int] = {}
    for at, parameter in enumerate(kernel.params):
        if at not in indices and (given := next(inputs, None)) is not None and hasattr(given, "shape"):
            sizes.update({str(name): int(size) for name, size in zip(parameter.shape, given.shape, strict=False)})
    made = []
    for at in indices:
        shape = [size if isinstance(size, int) else sizes[str(size)] for size in kernel.params[at].shape]
        made.append(torch.empty(shape, dtype=kernel.params[at].torch_dtype(), device="cuda"))
    return made[0] if len(made) == 1 else made or None
