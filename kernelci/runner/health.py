"""Whether this machine may take a job: readings before and after each one; pure functions say what they mean.

A GPU is compared with the host's first look at it. What a machine does not tell is None, and nothing follows from it.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from kernelci.config import RunnerOptions
from kernelci.runner.hardware import Gpu, Hardware, find
from kernelci.workbench.gpu_settings import GpuSettings, settings
from kernelci.workbench.health import Nvml, Readings, ailment
from kernelci.workbench.nvml_handle import THROTTLES, Handle

COMPUTE_MODES = {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive"}


class Fault(Struct, frozen=True):
    """Why no job may run now. `severe`: waiting mends nothing, so the host is quarantined at once."""

    text: str
    severe: bool = False


class GpuState(Struct, frozen=True):
    """One look at a GPU."""

    gpu: Gpu
    vital: Readings = Readings()
    settings: GpuSettings = GpuSettings()
    compute_mode: str = ""
    persistent: bool | None = None
    used_bytes: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    missing: str = ""
    """Why NVML no longer knows it."""


class Seen(Struct, frozen=True):
    """One look at the machine's GPUs."""

    hardware: Hardware = Hardware()
    gpus: tuple[GpuState, ...] = ()


class Machine(Protocol):
    """Where readings come from."""

    def look(self, fresh: bool = False) -> Seen:
        """A look at all GPUs; `fresh`: those that are there now, and else those of the last fresh look."""


class Nvidia:
    """Looks at GPUs through NVML; Xid events are kept from one look to the next."""

    def __init__(self) -> None:
        self._first = Hardware()
        self._vitals: dict[str, tuple[Handle, Nvml]] = {}

    def look(self, fresh: bool = False) -> Seen:
        """A look at all GPUs, and at what NVML lists now."""
        now = find()
        if fresh:
            self._first = now
            self._vitals = {gpu.uuid: (Handle(gpu.uuid), Nvml(gpu.uuid)) for gpu in now.gpus}
        return Seen(now, tuple(self._state(gpu) for gpu in self._first.gpus))

    def _state(self, gpu: Gpu) -> GpuState:
        handle, vital = self._vitals[gpu.uuid]
        if handle.missing or handle.ask("nvmlDeviceGetName") is None:
            return GpuState(gpu, missing=handle.missing or "NVML no longer answers")
        remapped = handle.ask("nvmlDeviceGetRemappedRows")
        memory = handle.ask("nvmlDeviceGetMemoryInfo")
        return GpuState(
            gpu,
            vital=Readings(**vital.read()),
            settings=settings(gpu.uuid),
            compute_mode=COMPUTE_MODES.get(handle.ask("nvmlDeviceGetComputeMode"), ""),
            persistent=_switch(handle.ask("nvmlDeviceGetPersistenceMode")),
            used_bytes=None if memory is None else int(memory.used),
            remap_pending=_switch(remapped and remapped[2]),
            remap_failed=_switch(remapped and remapped[3]),
        )


def _switch(found: Any) -> bool | None:
    return None if found is None else bool(found)


def gpu_faults(options: RunnerOptions, first: Seen, now: Seen) -> list[Fault]:
    """What is wrong with the GPUs, as against the first look."""
    if not first.gpus:
        return [Fault(f"no GPU: {first.hardware.missing or 'NVML lists none'}")]
    before = {state.gpu.uuid: state for state in first.gpus}
    found = [each for state in now.gpus for each in _faults(options, before[state.gpu.uuid], state)]
    if any(state.missing for state in now.gpus):
        return found
    if now.hardware.missing:
        found.append(Fault(now.hardware.missing, severe=True))
    elif len(now.hardware.gpus) < len(first.gpus):
        found.append(Fault(f"{len(now.hardware.gpus)} of {len(first.gpus)} GPUs are left", severe=True))
    if now.hardware.driver != first.hardware.driver:
        found.append(
            Fault(f"the driver was {first.hardware.driver} and is {now.hardware.driver}: start the host again")
        )
    return found


def _faults(options: RunnerOptions, before: GpuState, now: GpuState) -> list[Fault]:
    name = f"{now.gpu.name} {now.gpu.uuid[:12]}"
    if now.missing:
        return [Fault(f"{name}: lost ({now.missing})", severe=True)]
    if sick := ailment(before.vital, now.vital):
        return [Fault(f"{name}: {sick}", severe=True)]
    if now.remap_failed:
        return [Fault(f"{name}: a row of its memory could not be remapped", severe=True)]
    if now.remap_pending:
        return [Fault(f"{name}: memory rows wait to be remapped, which takes a reset", severe=True)]
    return [Fault(f"{name}: {text}") for text in (*_state_of(options, now), *_changes(options, before, now))]


def _state_of(options: RunnerOptions, now: GpuState) -> list[str]:
    found = []
    if now.vital.processes:
        found.append(f"another process (pid {', '.join(map(str, now.vital.processes[:5]))}) is on it")
    if now.used_bytes is not None and now.used_bytes > options.gpu_memory_used_bytes:
        found.append(f"{now.used_bytes / 2**30:.1f} GiB of its memory are in use, and no job runs")
    throttles = [name for bit, name in THROTTLES.items() if now.vital.throttle & bit]
    if throttles:
        found.append(f"{' and '.join(throttles)} throttle while idle")
    if options.compute_mode and now.compute_mode and now.compute_mode != options.compute_mode:
        found.append(f"compute mode is {now.compute_mode}, and is to be {options.compute_mode}")
    return found


def _changes(options: RunnerOptions, before: GpuState, now: GpuState) -> list[str]:
    found = []
    if not options.compute_mode and before.compute_mode and now.compute_mode != before.compute_mode:
        found.append(f"compute mode was {before.compute_mode} and is {now.compute_mode}")
    if before.persistent and now.persistent is False:
        found.append("persistence mode has been switched off")
    for what in ("clocks", "power_limit_w", "ecc", "mig"):
        was, is_ = getattr(before.settings, what), getattr(now.settings, what)
        if was != is_:
            found.append(f"{what} was {was or 'unknown'} and is {is_ or 'unknown'}")
    return found


def remarks(seen: Seen) -> tuple[str, ...]:
    """What this machine can't tell, or should be otherwise, and what stops nothing."""
    found = []
    for state in seen.gpus:
        if state.persistent is False:
            found.append(
                f"{state.gpu.name}: persistence mode is off, so the driver's settings go with its last process"
            )
        if state.vital.memory_errors is None:
            found.append(f"{state.gpu.name}: memory errors are not told (no ECC, or a virtual machine)")
        if state.settings.mig == "on":
            found.append(f"{state.gpu.name}: MIG is on; times on a part of a GPU are not those of a GPU")
    return tuple(dict.fromkeys(found))


def skew(options: RunnerOptions, github_time_s: float | None, here_s: float) -> list[Fault]:
    """Whether this host's clock is GitHub's."""
    if github_time_s is None or abs(here_s - github_time_s) <= options.max_skew_s:
        return []
    which = "ahead of" if here_s > github_time_s else "behind"
    return [Fault(f"this host's clock is {abs(here_s - github_time_s):.0f} s {which} GitHub's: is it synchronised?")]


def text(faults: Sequence[Fault]) -> str:
    """All of them in one line."""
    return "; ".join(fault.text for fault in faults)
