"""One GPU as NVML knows it. NVML may be missing, and may refuse any question: the answer is then None."""

import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

Found = TypeVar("Found")

# Bits of NVML's clocks event reasons (nvml.h) that say that a GPU is slower than it should be.
THROTTLES = {0x08: "hardware slowdown", 0x20: "software thermal", 0x40: "hardware thermal", 0x80: "power brake"}
# The power limit holds the clocks down: what a large matmul does to a healthy GPU.
POWER_CAP = 0x04


def answered(question: Callable[[], Found]) -> Found | None:
    """What a question gives, or None where this machine does not answer it."""
    with contextlib.suppress(Exception):
        return question()
    return None


class Handle:
    """Asks NVML about the GPU of a UUID ("GPU-…"). `missing`: why it can't be asked; empty if it can."""

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self.raw: Any = None
        self.missing = ""
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml, self.raw = pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except Exception as error:  # no package, no driver, no such GPU, no permission
            self.missing = f"{type(error).__name__}: {str(error)[:200]}"

    def ask(self, function: str, *constants: str) -> Any:
        """What pynvml's `function` says of this GPU, its further arguments given as names of constants; or None."""
        return answered(lambda: getattr(self._nvml, function)(self.raw, *(getattr(self._nvml, n) for n in constants)))

    def number(self, function: str, *constants: str, scale: float = 1.0) -> float | None:
        """A number, times `scale` into SI units; or None."""
        found = self.ask(function, *constants)
        return None if found is None else float(found) * scale

    def throttle(self) -> int | None:
        """The clocks event reasons, as bits."""
        found = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return None if found is None else int(found)

    def pids(self) -> tuple[int, ...] | None:
        """All processes that compute on this GPU, ours too, by the numbers that the driver knows them by."""
        running = self.ask("nvmlDeviceGetComputeRunningProcesses")
        return None if running is None else tuple(sorted(int(process.pid) for process in running))


def uuid_of(device: str) -> str:
    """A torch device's UUID as NVML knows it: NVML's numbering ignores CUDA_VISIBLE_DEVICES."""
    import torch

    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"


def ours(pid: int) -> bool | None:
    """Whether a process is this one or was started by it. None: it can't be seen, for example because it just ended."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
    return False
