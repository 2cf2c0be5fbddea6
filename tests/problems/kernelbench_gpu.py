"""The KernelBench project as a GPU host climbs it: the problems with their solutions in four DSLs."""

import shutil
from pathlib import Path

from kernelci.problems import defined_in

PROJECT = Path(__file__).parent / "kernelbench"
BACKENDS = {"triton": "triton", "cuda": "torch", "tilelang": "tilelang", "cutedsl": "cutedsl"}
"""By the first part of a solution's file name."""


def solutions() -> dict[str, Path]:
    """The files by kernel name, `softmax/triton_right`; some in Triton are those that the CPU's tests climb too."""
    own = {f"{path.parent.name}/{path.stem}": path for path in sorted((PROJECT / "gpu").rglob("*.py"))}
    shared = sorted((PROJECT / "kernels").rglob("*.py"))
    triton = [path for path in shared if defined_in(path).backend == "triton"]
    return own | {f"{path.parent.name}/triton_{path.stem}": path for path in triton}


def laid(root: Path) -> Path:
    """A project of them all in `root`."""
    shutil.copytree(PROJECT / "references", root / "references")
    for name, path in solutions().items():
        place = root / "kernels" / f"{name}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    return root
