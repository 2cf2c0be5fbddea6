"""Where NVIDIA's instruments for a kernel lie on this machine: compute-sanitizer and Nsight Compute."""

import functools
import shutil
from pathlib import Path

from kernelci.workbench import toolkit

SANITIZER = "compute-sanitizer"
# Below a toolkit's folder; what lies in its bin is a script that starts this one.
_SANITIZER_INSIDE = f"{SANITIZER}/{SANITIZER}"
NSIGHT_COMPUTE = "ncu"
_LOCAL = Path("/usr/local")
_NSIGHT = Path("/opt/nvidia/nsight-compute")


@functools.cache
def compute_sanitizer() -> Path | None:
    """The tool itself: its libraries lie beside it."""
    on_path = shutil.which(SANITIZER)
    homes = [toolkit.home(_SANITIZER_INSIDE), Path(on_path).resolve().parents[1] if on_path else None]
    for home in filter(None, [*homes, *sorted(_LOCAL.glob("cuda-*"), reverse=True)]):
        if (home / _SANITIZER_INSIDE).is_file():
            return (home / _SANITIZER_INSIDE).resolve()
    return Path(on_path).resolve() if on_path else None


@functools.cache
def nsight_compute() -> Path | None:
    """Nsight Compute's command line, on PATH or where its installers put it; the newest."""
    on_path = shutil.which(NSIGHT_COMPUTE)
    home = toolkit.home(f"bin/{NSIGHT_COMPUTE}")
    places = [
        Path(on_path) if on_path else None,
        home / "bin" / NSIGHT_COMPUTE if home else None,
        *sorted(_NSIGHT.glob(f"*/{NSIGHT_COMPUTE}"), reverse=True),
        *sorted(_LOCAL.glob(f"cuda-*/bin/{NSIGHT_COMPUTE}"), reverse=True),
    ]
    return next((place for place in places if place and place.is_file()), None)


@functools.cache
def nsight_compute_inside() -> Path | None:
    """The program that the command line starts, below the folder of its version: that is what a sandbox can show."""
    found = nsight_compute()
    if found is None:
        return None
    homes = [found.resolve().parent, *found.resolve().parent.parent.glob("nsight-compute-*")]
    for home in [*homes, *sorted(_NSIGHT.glob("*"), reverse=True)]:
        for path in sorted(home.glob(f"target/linux-desktop-*/{NSIGHT_COMPUTE}")):
            return path
    return found.resolve()


def home_of_nsight_compute(binary: Path) -> Path:
    """The folder that holds all that this program needs."""
    return binary.parents[2] if binary.parent.parent.name == "target" else binary.parent
