"""How a GPU is set up, as NVML tells: what two machines must share for their times to be compared."""

from msgspec import Struct

from kernelci.model import Switch
from kernelci.workbench.nvml_handle import Handle

MAX_TEXT = 300


class GpuSettings(Struct, frozen=True):
    """Part of a report's environment. Empty and None: this machine does not tell."""

    gpu_uuid: str = ""
    clocks: str = ""
    power_limit_w: float | None = None
    ecc: Switch = ""
    mig: Switch = ""


def settings(uuid: str) -> GpuSettings:
    """The settings of the GPU with this UUID ("GPU-…")."""
    handle = Handle(uuid)
    return GpuSettings(
        gpu_uuid=uuid[:MAX_TEXT],
        clocks=_clocks(handle),
        power_limit_w=handle.number("nvmlDeviceGetEnforcedPowerLimit", scale=1e-3),
        ecc=switch(handle.ask("nvmlDeviceGetEccMode")),
        mig=switch(handle.ask("nvmlDeviceGetMigMode")),
    )


def _clocks(handle: Handle) -> str:
    return clocks(
        handle.number("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM", scale=1e6),
        handle.number("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM", scale=1e6),
        handle.number("nvmlDeviceGetApplicationsClock", "NVML_CLOCK_SM", scale=1e6),
    )


def clocks(sm_hz: float | None, memory_hz: float | None, applications_hz: float | None) -> str:
    """The clock policy in words. NVML has no question for clocks that were locked (`nvidia-smi -lgc`)."""
    named = (("max", sm_hz), ("memory", memory_hz), ("applications", applications_hz))
    return ", ".join(f"{name} {value / 1e6:.0f} MHz" for name, value in named if value is not None)


def switch(modes: object) -> Switch:
    """NVML's pair of a current and a pending mode: "on", "off", or empty where there is no such thing."""
    if not isinstance(modes, list | tuple) or not modes:
        return ""
    return "on" if modes[0] else "off"
