"""How long the referee's own work takes, by the device's clock."""

import time
from collections.abc import Callable

import torch


def stopwatch(device: str) -> Callable[[], float]:
    """Started now; calling it waits for the referee's own work, and gives ns by the device's clock."""
    if device == "cpu":
        began = time.perf_counter_ns()
        return lambda: float(time.perf_counter_ns() - began)
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()

    def stop() -> float:
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last) * 1e6)

    return stop
