"""What `doctor` says of the instruments around a GPU: its state, the ledger, NVIDIA's own tools."""

from kernelci.check import Check
from kernelci.workbench import instruments, nvml
from kernelci.workbench.nvml import State
from kernelci.workbench.nvml_handle import uuid_of
from kernelci.workbench.recorder import Recorder

DEVICE = "cuda:0"
INSTALL = "pip install 'kernelci[gpu]'"
NO_GPU = "not asked: no GPU"


def examine(has_gpu: bool) -> list[Check]:
    """The instruments that a measurement uses, in that order. `has_gpu`: torch sees one."""
    return [_state(has_gpu), _ledger(has_gpu), _nsight_compute(), _sanitizer()]


def _state(has_gpu: bool) -> Check:
    if not has_gpu:
        return Check("NVML", False, NO_GPU)
    device = nvml.Device(uuid_of(DEVICE))
    return state(device.state(), device.missing)


def state(found: State, missing: str) -> Check:
    """What NVML tells of the GPU, or `missing`: why nothing."""
    if missing:
        return Check("NVML", False, missing, f"{INSTALL}; until then throttled blocks of a benchmark are not seen")
    if found.sm_clock_hz is None:
        step = "throttled blocks of a benchmark are not seen; a virtual machine may need its host's consent"
        return Check("NVML", False, "it does not tell the clocks", step)
    readings = [f"SM clock {found.sm_clock_hz / 1e6:.0f} MHz"]
    readings += [f"{found.power_w:.0f} W"] if found.power_w is not None else []
    readings += [f"{found.temperature_c:.0f} °C"] if found.temperature_c is not None else []
    return Check("NVML", True, ", ".join(readings))


def _ledger(has_gpu: bool) -> Check:
    if not has_gpu:
        return Check("ledger", False, NO_GPU)
    recorder = Recorder(DEVICE)
    recorder.close()
    return ledger(recorder.missing)


def ledger(missing: str) -> Check:
    """Whether CUPTI records kernels; `missing`: why not."""
    if not missing:
        return Check("ledger", True, "CUPTI records kernels")
    if "PRIVILEGES" in missing:
        step = "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reboot"
    elif missing.startswith(("ModuleNotFoundError", "ImportError")) or "not found" in missing:
        step = INSTALL
    else:
        step = "only one profiler can listen in a process; benchmarks work, but without the ledger"
    return Check("ledger", False, missing, step)


def _nsight_compute() -> Check:
    found = instruments.nsight_compute()
    step = "" if found else "apt-get install nsight-compute, or put `ncu` on PATH"
    return Check("Nsight Compute", found is not None, str(found or "no `ncu`"), step)


def _sanitizer() -> Check:
    found = instruments.compute_sanitizer()
    step = "" if found else "kernelci explain no-sanitizer"
    return Check("compute-sanitizer", found is not None, str(found or "not installed"), step)
