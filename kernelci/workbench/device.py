"""The device that kernels run on: a GPU where there is one, else the CPU (for Triton's interpreter)."""

import importlib.metadata
import platform
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kernelci import gpus
from kernelci.errors import ConfigError
from kernelci.model import Environment
from kernelci.workbench.gpu_settings import GpuSettings, settings
from kernelci.workbench.nvml_handle import Handle, answered, uuid_of

DISTRIBUTIONS = (
    "torch",
    "triton",
    "tilelang",
    "nvidia-cutlass-dsl",
    "cuda-core",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "numpy",
)


class Device(Struct, frozen=True):
    """A torch device and what it is. `target` is empty on the CPU."""

    torch_name: str
    name: str = ""
    target: str = ""
    driver: str = ""
    memory_bytes: int = 0
    uuid: str = ""
    """As NVML and CUDA_VISIBLE_DEVICES know it."""
    node: int | None = None
    """N of its device node /dev/nvidiaN; None: this machine does not tell."""

    @property
    def is_gpu(self) -> bool:
        """Whether kernels run natively here."""
        return self.torch_name != "cpu"

    def enter(self) -> None:
        """Make it the GPU of this thread: torch and CUDA keep one for each."""
        import torch

        if self.is_gpu:
            torch.cuda.set_device(self.torch_name)


def find() -> Device:
    """The first GPU that torch sees, or the CPU. Imports torch."""
    import torch

    return _gpu(0) if torch.cuda.is_available() else Device("cpu")


def find_all() -> tuple[Device, ...]:
    """Every GPU that torch sees, or the CPU. Imports torch."""
    import torch

    if not torch.cuda.is_available():
        return (Device("cpu"),)
    return tuple(_gpu(number) for number in range(torch.cuda.device_count()))


def why_no_gpu(nodes: Path = Path("/dev")) -> str:
    """What is to be said where torch sees no GPU: there is none, or the driver and torch don't fit."""
    found = sorted(nodes.glob("nvidia[0-9]*"))
    if not found:
        return "no GPU on this machine"
    return f"torch sees no GPU, though {found[0]} is there: install a CUDA build of torch that fits the driver"


def serves(backend: str, device: Device) -> bool:
    """Whether kernels of a backend run on a device at all."""
    return device.is_gpu or backend in ("triton", "torch")


def choose(wanted: str, known: Sequence[Device]) -> tuple[Device, ...]:
    """Those of the known devices that are wanted: a count, "all", or numbers separated by commas.

    Without a GPU it is the CPU, whatever is wanted. Raises ConfigError("gpus") for more or others than there are, and
    for GPUs of several kinds, since a run's figures must come from one.
    """
    if not known[0].is_gpu:
        return (known[0],)
    if wanted == "all":
        numbers = list(range(len(known)))
    elif "," in wanted:
        numbers = list(dict.fromkeys(int(part) for part in wanted.split(",") if part))
    else:
        numbers = list(range(int(wanted)))
    if any(number >= len(known) for number in numbers):
        names = ", ".join(f"{number}: {device.name}" for number, device in enumerate(known))
        raise ConfigError(f"gpus = {wanted!r}, and this machine has {len(known)}", hint=names, code="gpus")
    chosen = tuple(known[number] for number in numbers)
    kinds = sorted({device.name for device in chosen})
    if len(kinds) > 1:
        hint = "name those of one kind, for example --gpus 0,1"
        raise ConfigError(f"gpus = {wanted!r} are of several kinds: {', '.join(kinds)}", hint=hint, code="gpus")
    return chosen


def _gpu(number: int) -> Device:
    import torch

    name = f"cuda:{number}"
    found = torch.cuda.get_device_properties(number)
    target = target_of(found.name, (found.major, found.minor))
    uuid = answered(lambda: uuid_of(name)) or ""
    node = Handle(uuid).ask("nvmlDeviceGetMinorNumber") if uuid else None
    return Device(name, found.name, target, _driver(), found.total_memory, uuid, None if node is None else int(node))


def target_of(name: str, capability: tuple[int, int]) -> str:
    """The compile target of a GPU: from gpus.toml by its name, else by its capability."""
    known = gpus.by_name(name)
    if known is not None:
        return known.target
    number = capability[0] * 10 + capability[1]
    return f"sm_{number}{'a' if number >= 90 else ''}"


def _driver() -> str:
    """NVML is optional: without it the report shows no driver version."""
    return answered(_asked_driver) or ""


def _asked_driver() -> str:
    import pynvml

    pynvml.nvmlInit()
    version = pynvml.nvmlSystemGetDriverVersion()
    return version.decode() if isinstance(version, bytes) else str(version)


def versions(names: tuple[str, ...] = DISTRIBUTIONS) -> dict[str, str]:
    """Installed versions by distribution; those that are missing are left out."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def environment(device: Device, isolation: str) -> Environment:
    """What the report says of this machine."""
    found = (answered(lambda: settings(uuid_of(device.torch_name))) if device.is_gpu else None) or GpuSettings()
    return Environment(
        machine=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        gpu=device.name,
        target=device.target,
        driver=device.driver,
        isolation=isolation,
        versions=versions(),
        gpu_uuid=found.gpu_uuid,
        cuda=_cuda() if device.is_gpu else "",
        clocks=found.clocks,
        power_limit_w=found.power_limit_w,
        ecc=found.ecc,
        mig=found.mig,
    )


def _cuda() -> str:
    import torch

    return str(torch.version.cuda or "")
