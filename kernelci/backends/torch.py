"""What torch builds or calls by itself: extensions through `load_inline` or TVM-FFI, and torch's own operations.

Nothing is intercepted; the kernel is compiled where it is imported, in the sandbox. Only solutions without a card get
this backend.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelci.backends import Build, Builds, CompileFailed, Tuning
from kernelci.gpus import Gpu
from kernelci.workbench import toolkit

REUSES_CACHE = True
INTERCEPTS = False
DISTRIBUTIONS = ("torch", "nvidia-cuda-nvcc", "apache-tvm-ffi")
_USUAL_ARCHITECTURES = "8.0;9.0a;10.0a"


def environment(cache_dir: Path) -> dict[str, str]:
    """Extensions are built below `cache_dir`, with the compiler of NVIDIA's wheels, for the GPU that is there."""
    return {
        **toolkit.environment(),
        "TORCH_EXTENSIONS_DIR": str(cache_dir / "extensions"),
        "TORCH_CUDA_ARCH_LIST": _architectures(),
        "TVM_FFI_CACHE_DIR": str(cache_dir / "tvm-ffi"),
        "TVM_FFI_CUDA_ARCH_LIST": _architectures().replace(";", " "),
        "CUDA_VISIBLE_DEVICES": "",
        "MAX_JOBS": str(min(4, os.cpu_count() or 1)),
        "CC": "gcc",
        "CXX": "g++",
    }


def _architectures() -> str:
    """As torch's extension loader wants them; both who fills the cache and who finds it there must say the same."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return _USUAL_ARCHITECTURES
    major, minor = torch.cuda.get_device_capability(0)
    return f"{major}.{minor}{'a' if major >= 9 else ''}"


def preload() -> None:
    """Import torch and its extension loader."""
    importlib.import_module("torch.utils.cpp_extension")


def tuned(config: int | None) -> contextlib.AbstractContextManager[Tuning]:
    """Nothing to choose here."""
    return contextlib.nullcontext(Tuning())


def describe(compiled: object, target: str) -> list[Build]:
    """Raises CompileFailed: there is nothing that a `compile` could yield."""
    raise CompileFailed(f"compile() yielded {type(compiled).__name__}, and torch's own builds are not taken apart")


@contextlib.contextmanager
def intercept(gpu: Gpu, all_configs: bool = False) -> Iterator[Builds]:
    """Nothing is intercepted."""
    yield Builds()
