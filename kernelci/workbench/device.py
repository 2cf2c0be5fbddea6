"""The device that kernels run on: a GPU where there is one, else the CPU (for Triton's interpreter)."""

import importlib.metadata
import platform

from msgspec import Struct

from kernelci import gpus
from kernelci.model import Environment
from kernelci.workbench.gpu_settings import GpuSettings, settings
from kernelci.workbench.nvml_handle import answered, uuid_of

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

    @property
    def is_gpu(self) -> bool:
        """Whether kernels run natively here."""
        return self.torch_name != "cpu"


def find() -> Device:
    """The first GPU that torch sees, or the CPU. Imports torch."""
    import torch

    if not torch.cuda.is_available():
        return Device("cpu")
    properties = torch.cuda.get_device_properties(0)
    capability = (properties.major, properties.minor)
    return Device("cuda:0", properties.name, target_of(properties.name, capability), _driver(), properties.total_memory)


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
