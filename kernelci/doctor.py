"""What `doctor` finds out: what this machine can and can't do, and what to do about it."""

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from kernelci import backends, catalog, config, doctor_gpu
from kernelci.check import Check
from kernelci.errors import KernelciError
from kernelci.workbench import cubin, toolkit

# What each backend's kernels need, by module; `kernelci[NAME]` installs it.
MODULES = {
    "triton": ("torch", "triton"),
    "tilelang": ("torch", "tilelang"),
    "cutedsl": ("torch", "cutlass"),
    "cuda": ("torch", "cuda.core"),
    "torch": ("torch",),
}
EXTRAS = {"torch": "gpu"}  # of backends that have none of their own name


def examine(root: Path) -> list[Check]:
    """All checks, in the order in which a run meets them."""
    root = root.resolve()
    gpu = _gpu()
    instruments = doctor_gpu.examine(gpu.passed)
    return [*_project(root), *_backends(), _compiler(), _tools(), gpu, *instruments, _cache(root), _isolation()]


def _project(root: Path) -> list[Check]:
    try:
        options = config.load(root)
        found = catalog.scan(root, options)
    except KernelciError as error:
        return [Check("project", False, error.message, error.hint, essential=True)]
    broken = [kernel for kernel in found.kernels if kernel.card is None]
    text = f"kernels: {len(found.kernels)}, references: {len(found.references)}"
    checks = [
        Check(
            "project",
            bool(found.kernels),
            text,
            "" if found.kernels else "kernelci new REFERENCE/NAME --backend triton",
        )
    ]
    checks += [
        Check(f"kernel {kernel.name}", False, f"card: {kernel.error}", "kernelci explain card") for kernel in broken
    ]
    return checks + [_reference(path) for path in found.references.values()]


def _reference(path: Path) -> Check:
    """Import a reference and ask it for its cases, where torch is installed."""
    if not _has("torch"):
        return Check(f"reference {path.stem}", False, "not imported: torch is missing", "pip install 'kernelci[gpu]'")
    from kernelci.reference import ReferenceFailed, load

    try:
        cases = load(path).cases()
    except ReferenceFailed as error:
        return Check(f"reference {path.stem}", False, str(error), "kernelci explain reference")
    checks = sum(case.kind == "check" for case in cases)
    step = "" if checks else "kernelci explain no-cases"
    return Check(f"reference {path.stem}", checks > 0, f"{checks} check and {len(cases) - checks} bench cases", step)


def _backends() -> list[Check]:
    checks = []
    for name in backends.names():
        missing = [module for module in MODULES.get(name, ()) if not _has(module)]
        if name == "tilelang" and toolkit.home() is None:
            missing.append("nvcc")
        versions = ", ".join(filter(None, (_version(package) for package in backends.get(name).DISTRIBUTIONS)))
        found = f"missing: {', '.join(missing)}" if missing else versions
        checks.append(Check(f"backend {name}", not missing, found, _install(name) if missing else ""))
    return checks


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _version(distribution: str) -> str:
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def _compiler() -> Check:
    """Triton and TileLang build the host side of a launch with it, on a GPU host."""
    found = next(filter(None, (shutil.which(name) for name in ("g++", "c++", "clang++"))), "")
    return Check("C++ compiler", bool(found), found or "none on PATH", "" if found else "apt-get install g++")


def _tools() -> Check:
    found = {name: cubin.tools(name)[:1] for name in ("cuobjdump", "nvdisasm")}
    missing = [name for name, paths in found.items() if not paths]
    if missing:
        return Check("disassembly", False, f"missing: {', '.join(missing)}", "pip install 'kernelci[triton]'")
    folders = dict.fromkeys(str(Path(paths[0]).parent) for paths in found.values())
    return Check("disassembly", True, f"{', '.join(found)} in {', '.join(folders)}")


def _gpu() -> Check:
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        step = "compile and (for Triton) the interpreter work without one; everything else needs a GPU host"
        return Check("GPU", False, "no /dev/nvidia*", step)
    if not _has("torch"):
        return Check("GPU", False, "not asked: torch is missing", "pip install 'kernelci[gpu]'")
    from kernelci.workbench.device import find

    device = find()
    if not device.is_gpu:
        return Check(
            "GPU",
            False,
            "torch sees no GPU although /dev/nvidia* is there",
            "install a CUDA build of torch that fits the driver",
        )
    return Check("GPU", True, f"{device.name}, {device.target}, driver {device.driver or 'unknown'}")


def _cache(root: Path) -> Check:
    try:
        folder = config.cache_folder(config.load(root))
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, KernelciError) as error:
        return Check("cache", False, str(error), "set cache in [tool.kernelci]", essential=True)
    free = shutil.disk_usage(folder).free
    writable = os.access(folder, os.W_OK)
    return Check(
        "cache",
        writable,
        f"{folder}, {free / 2**30:.1f} GiB free",
        "" if writable else "set cache in [tool.kernelci]",
        essential=True,
    )


def _isolation() -> Check:
    from kernelci.workbench.sandbox import level

    found = level()
    until = "it contains more" if found.restricted else "until then run only kernels that you would run yourself"
    step = f"apt-get install bubblewrap; {until}"
    why = f" ({found.why})" if found.why else ""
    return Check("isolation", found.sandboxed, found.text + why, "" if found.sandboxed else step)


def _install(backend: str) -> str:
    return f"pip install 'kernelci[{EXTRAS.get(backend, backend)}]'"


def conclusion(checks: list[Check]) -> str:
    """What all of it means for a run on this machine, in one sentence."""
    passed = {check.name for check in checks if check.passed}
    backends_here = [name.removeprefix("backend ") for name in sorted(passed) if name.startswith("backend ")]
    able = [name for name in backends_here if name != "torch"]  # which builds where a solution is imported
    if not able or any(check.essential and not check.passed for check in checks):
        return "Nothing can be compiled or run here yet: see the lines that say NO."
    compiled = f"This machine compiles {', '.join(able)} for every target"
    if "GPU" in passed:
        return f"{compiled}, and runs and checks them on its GPU."
    if "triton" in able:
        return f"{compiled}, and checks Triton kernels in the interpreter; the rest needs a GPU host."
    return f"{compiled}; running them needs a GPU host."


def table(checks: list[Check], meaning: Callable[[list[Check]], str] = conclusion) -> str:
    """One line per check, with what to do where it failed; then what it means."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{'yes' if check.passed else 'NO ':<3}  {check.name:<{width}}  {check.found}")
        if check.next_step:
            lines.append(f"{'':5}{'':<{width}}  → {check.next_step}")
    return "\n".join([*lines, "", meaning(checks)])
