"""Where CUDA's compiler and headers are: NVIDIA's Python wheels if installed, else a toolkit of the machine."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def home(needs: str = "bin/nvcc") -> Path | None:
    """The first folder that holds `needs`: of the wheels (`nvidia/cu13`), CUDA_HOME, nvcc on PATH, /usr/local/cuda."""
    for place in _places():
        if (place / needs).exists():
            return place
    return None


def environment() -> dict[str, str]:
    """CUDA_HOME and PATH for a child process; empty if no toolkit is found, so that the child says what it misses."""
    found = home() or home("include/cuda_runtime.h")
    if found is None:
        return {}
    path = os.pathsep.join(dict.fromkeys([str(found / "bin"), *os.environ.get("PATH", "").split(os.pathsep)]))
    return {"CUDA_HOME": str(found), "CUDA_PATH": str(found), "PATH": path}


def _places() -> Iterator[Path]:
    wheels = importlib.util.find_spec("nvidia")
    for folder in (wheels.submodule_search_locations or []) if wheels else []:
        yield from sorted(Path(folder).glob("cu[0-9]*"), reverse=True)
        yield from sorted(Path(folder).glob("cuda_nvcc"))
    if given := os.environ.get("CUDA_HOME"):
        yield Path(given)
    if compiler := shutil.which("nvcc"):
        yield Path(compiler).resolve().parent.parent
    yield Path("/usr/local/cuda")
