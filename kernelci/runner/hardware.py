"""The GPUs of this machine, asked through NVML, and the labels that jobs find it by."""

import platform
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from kernelci import gpus
from kernelci.workbench.nvml_handle import answered

ALWAYS = ("self-hosted", "linux", "ephemeral")
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
_UUID = re.compile(r"GPU-[0-9a-f-]{36}")


class Gpu(Struct, frozen=True):
    """One GPU, as the driver names it."""

    uuid: str
    name: str
    capability: tuple[int, int] | None = None


class Hardware(Struct, frozen=True):
    """What this machine has. `missing`: why its GPUs can't be asked; empty if they can."""

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    missing: str = ""


def find() -> Hardware:
    """Ask NVML."""
    try:
        import pynvml

        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
    except Exception as error:  # no package, no driver, no permission
        return Hardware(missing=f"{type(error).__name__}: {str(error)[:200]}")
    driver = answered(pynvml.nvmlSystemGetDriverVersion)
    found = [answered(lambda index=index: _gpu(pynvml, index)) for index in range(count)]  # type: ignore[misc]
    lost = [index for index, gpu in enumerate(found) if gpu is None]
    missing = f"GPU {', '.join(map(str, lost))} does not answer" if lost else ""
    return Hardware(tuple(gpu for gpu in found if gpu is not None), _text(driver), missing)


def _gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    uuid = _text(nvml.nvmlDeviceGetUUID(handle))
    if not _UUID.fullmatch(uuid):
        raise ValueError(f"no UUID: {uuid!a}")
    capability = answered(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    return Gpu(uuid, _text(nvml.nvmlDeviceGetName(handle))[:100], tuple(capability) if capability else None)


def _text(found: Any) -> str:
    return found.decode(errors="replace") if isinstance(found, bytes) else str(found or "")


def labels(found: Hardware, further: Iterable[str] = (), machine: str = "") -> tuple[str, ...]:
    """Every label: what all such hosts have, the GPUs' models and targets, how many there are, the driver."""
    machine = machine or platform.machine()
    made = [*ALWAYS, _MACHINES.get(machine, machine)]
    if found.gpus:
        known = Counter(name for gpu in found.gpus for name in _of(gpu))
        made += ["gpu", *known, f"gpus:{len(found.gpus)}"]
    if found.gpus and re.fullmatch(r"[0-9.]{1,20}", found.driver):
        made += [f"driver:{found.driver}", f"driver:{found.driver.partition('.')[0]}"]
    return tuple(dict.fromkeys([*made, *further]))


def _of(gpu: Gpu) -> tuple[str, ...]:
    """`gpu:h200` and `sm_90a`; for a GPU that gpus.toml lacks, its own name and its capability."""
    table = gpus.by_name(gpu.name)
    if table is not None:
        key = next(key for key, each in gpus.gpus().items() if each is table or each == table)
        return f"gpu:{key}", table.target
    slug = re.sub(r"[^a-z0-9]+", "-", gpu.name.lower()).strip("-")[:60] or "unknown"
    return (f"gpu:{slug}", *([f"sm_{gpu.capability[0]}{gpu.capability[1]}"] if gpu.capability else []))
