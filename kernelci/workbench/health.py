"""Is the GPU well? Asked after a candidate's fault on it, before anyone is judged by its answers again.

A small computation and copy in the referee's own context, the memory that is free, and what NVML tells (Xid events,
memory errors, throttling, other processes), each where this machine has it. What the readings mean is decided by pure
functions. Without a GPU all of this does nothing.
"""

import functools
import threading
from typing import Any

from msgspec import Struct

from kernelci.errors import GpuSick
from kernelci.workbench.nvml_handle import THROTTLES, Handle, answered, ours, uuid_of

# Faults after which a GPU may be sick; all others happen on the host.
SUSPECT = ("gpu-fault", "crashed", "hang")
PROBE_TIMEOUT_S = 10.0
ELEMENTS = 2**16
FREE_SHARE = 0.02  # with less of its memory than this no kernel can be judged
# Xid numbers that tell of hardware or driver; 13, 31, 43, 45 and the like follow from a kernel's own fault
# (NVIDIA's "Xid Errors": double-bit error, row remapping, NVLink, off the bus, contained and uncontained errors, GSP).
SICK_XIDS = frozenset({48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 110, 119, 120, 140, 143})


class Readings(Struct, frozen=True):
    """What was read of a GPU at one time. None and empty: this machine does not tell."""

    fault: str = ""
    """What went wrong in the probe itself."""
    free_bytes: int | None = None
    total_bytes: int | None = None
    xids: tuple[int, ...] = ()
    """Xid events since the readings before."""
    memory_errors: int | None = None
    """Uncorrected ECC errors since the driver was loaded."""
    throttle: int = 0
    processes: tuple[int, ...] = ()
    """Processes on the GPU that are none of ours."""


def ailment(before: Readings, now: Readings) -> str:
    """Why nothing that this GPU answers can be trusted any more; empty if it is well."""
    if now.fault:
        return f"the referee's own computation failed: {now.fault}"
    bad = [xid for xid in now.xids if xid in SICK_XIDS]
    if bad:
        return f"the driver reported Xid {', '.join(map(str, bad))}"
    if before.memory_errors is not None and now.memory_errors is not None and now.memory_errors > before.memory_errors:
        return f"{now.memory_errors - before.memory_errors} new uncorrected memory errors (ECC)"
    if now.free_bytes is not None and now.total_bytes and before.free_bytes is not None:
        lost = before.free_bytes - now.free_bytes
        if now.free_bytes < FREE_SHARE * now.total_bytes and lost > 0:
            return f"only {now.free_bytes} bytes of GPU memory are left; the fault's process did not give back its own"
    return ""


def remarks(before: Readings, now: Readings) -> tuple[str, ...]:
    """What is no illness, and yet worth telling."""
    throttled = [name for bit, name in THROTTLES.items() if now.throttle & bit and not before.throttle & bit]
    new = sorted(set(now.processes) - set(before.processes))
    found = [f"throttled: {', '.join(throttled)}"] if throttled else []
    return (*found, *([f"{len(new)} foreign processes on the GPU"] if new else []))


class Monitor:
    """Watches one device: readings at the start, new ones after each fault. Once sick, it stays so."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._sick = ""
        self._probe = Probe(device) if device != "cpu" else None
        self._before = self._probe.read() if self._probe else Readings()
        self.notes: tuple[str, ...] = ()

    def require_well(self) -> None:
        """Raise GpuSick if the GPU is known to be sick."""
        if self._sick:
            raise GpuSick(self._sick, hint="see `nvidia-smi` and the kernel log")

    def after(self, reason: str) -> None:
        """Probe if a fault of this kind may have hurt the GPU. Raises GpuSick."""
        if self._probe is None or reason not in SUSPECT:
            return
        with self._lock:
            if not self._sick:
                now = self._probe.read()
                self._sick = ailment(self._before, now)
                self.notes = tuple(dict.fromkeys((*self.notes, *remarks(self._before, now))))
        self.require_well()


@functools.cache
def monitor(device: str) -> Monitor:
    """The one monitor of a device."""
    return Monitor(device)


class Probe:
    """Takes readings of one GPU."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._nvml = Nvml(uuid_of(device))

    def read(self) -> Readings:
        """Compute, copy and ask; a GPU that does not answer in time is a fault too."""
        found: dict[str, Any] = {"fault": f"no answer within {PROBE_TIMEOUT_S:.0f} s"}
        worker = threading.Thread(target=self._into, args=(found,), name="health", daemon=True)
        worker.start()
        worker.join(PROBE_TIMEOUT_S)
        return Readings(**dict(found))

    def _into(self, found: dict[str, Any]) -> None:
        try:
            read = self._memory() | self._nvml.read() | {"fault": computed(self._device)}
        except Exception as error:
            read = {"fault": f"{type(error).__name__}: {str(error)[:500]}"}
        found.update(read)

    def _memory(self) -> dict[str, Any]:
        import torch

        free, total = torch.cuda.mem_get_info(self._device)
        return {"free_bytes": free, "total_bytes": total}


def computed(device: str) -> str:
    """What is wrong with a sum and a copy whose results are known, or nothing."""
    import torch

    values = torch.arange(ELEMENTS, dtype=torch.int64, device=device)
    copied = (values * 3 + 1).cpu()
    total = int((values * 3 + 1).sum())
    right = torch.equal(copied, torch.arange(ELEMENTS, dtype=torch.int64) * 3 + 1)
    if right and total == 3 * ELEMENTS * (ELEMENTS - 1) // 2 + ELEMENTS:
        return ""
    return "a sum of known numbers is wrong"


class Nvml:
    """What NVML tells of one GPU; each question that this machine doesn't answer is left out."""

    def __init__(self, uuid: str) -> None:
        self._handle = Handle(uuid)
        self._events = answered(self._registered)  # None in most virtual machines: no Xid events there

    def read(self) -> dict[str, Any]:
        """Readings by their names."""
        found = {
            "xids": answered(self._xids),
            "memory_errors": self._handle.ask(
                "nvmlDeviceGetTotalEccErrors", "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC"
            ),
            "throttle": self._handle.throttle(),
            "processes": answered(self._processes),
        }
        return {name: value for name, value in found.items() if value is not None}

    def _registered(self) -> Any:
        import pynvml

        events = pynvml.nvmlEventSetCreate()
        pynvml.nvmlDeviceRegisterEvents(self._handle.raw, pynvml.nvmlEventTypeXidCriticalError, events)
        return events

    def _xids(self) -> tuple[int, ...]:
        import pynvml

        found: list[int] = []
        while self._events is not None and len(found) < 100:
            try:
                found.append(int(pynvml.nvmlEventSetWait_v2(self._events, 0).eventData))
            except pynvml.NVMLError:  # a timeout: there is no more
                break
        return tuple(found)

    def _processes(self) -> tuple[int, ...]:
        return tuple(pid for pid in self._handle.pids() or () if ours(pid) is False)
