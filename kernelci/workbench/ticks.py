"""The SM clock just behind a window, by a kernel of the referee's own that waits for a known number of cycles.

NVML's figure is no measure of a window: it comes a tenth of a second late. On an H200 (2026-11-30) it showed 1980 MHz
through four windows of a matmul whose clock was 1.63 GHz by then, as their times said too.
"""

import functools
from collections.abc import Callable
from itertools import pairwise

import torch

# Cycles: a wait behind which the host can queue the others; one whose time is left out of the others', since an event
# takes time too; and two that are as long as the step in which events count is short: a thousandth of them.
AHEAD, SHORT, LONG = 200_000, 50_000, 650_000
AGREE = 0.02  # what the two may differ by; where something else computes meanwhile, one of them takes far longer


def ticking(device: str) -> Callable[[], float]:
    """Begun now; calling it waits for that (0.8 ms), and gives the SM clock in Hz; 0 without a GPU, or where something
    else computed meanwhile."""
    if device == "cpu":
        return lambda: 0.0
    with torch.cuda.device(device):
        _load(device)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        torch.cuda._sleep(AHEAD)
        events[0].record()
        for event, cycles in zip(events[1:], (SHORT, LONG, LONG), strict=True):
            torch.cuda._sleep(cycles)
            event.record()

    def hertz() -> float:
        events[-1].synchronize()
        return rate(*(before.elapsed_time(after) for before, after in pairwise(events)))

    return hertz


def rate(short_ms: float, *long_ms: float) -> float:
    """Hz, by what a short wait and two long ones took; 0 where these disagree."""
    first, second = (one - short_ms for one in long_ms)
    if min(first, second) <= 0 or abs(first - second) > AGREE * min(first, second):
        return 0.0
    return 2e3 * (LONG - SHORT) / (first + second)


@functools.cache
def _load(device: str) -> None:
    """Have the kernel on the device: its first launch takes longer than a wait."""
    torch.cuda._sleep(1)
    torch.cuda.synchronize(device)
