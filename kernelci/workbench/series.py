"""A series: many calls of one entry, each on its own slot of the arena (the untrusted side).

Its times are claims. What decides is the referee's own clock around a `Go`, and what lies in the slots afterwards.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from kernelci.workbench.protocol import Call, Finished, Series, TensorPlace

WARM_UP_CALLS = 2  # the first compiles and tunes


def make_ready(message: Series, calls: list[Callable[[], Any]], device: str) -> "tuple[ReadySeries | None, str]":
    """Warm up on the first slot, then capture; where that is refused, None and why."""
    for _ in range(WARM_UP_CALLS if calls else 0):
        calls[0]()
    settle(device)
    if message.mode != "graph":
        return ReadySeries(looped(calls, message.mode == "each", device), device, message.call), ""
    try:
        return ReadySeries(captured(calls), device, message.call), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"[:4000]


class ReadySeries:
    """A series that waits for its `Go`."""

    def __init__(self, run: Callable[[], None], device: str, call: Call) -> None:
        self._run = run
        self._device = device
        self.call = call

    def go(self) -> Finished:
        """Make all calls; wait for the whole device, not for one stream only."""
        if self._device == "cpu":
            self._run()
            return Finished()
        import torch

        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        self._run()
        last.record()
        torch.cuda.synchronize()
        return Finished(first.elapsed_time(last) * 1e6)


def settle(device: str) -> None:
    """Wait until the device has done all of its work."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def captured(calls: list[Callable[[], Any]]) -> Callable[[], None]:
    """A CUDA graph of the calls, replayed once so that it lies on the device. Raises what capturing raises."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    replay: Callable[[], None] = graph.replay
    replay()
    torch.cuda.synchronize()
    return replay


def looped(calls: list[Callable[[], Any]], waits: bool, device: str) -> Callable[[], None]:
    """The calls one after another, waiting for the device after each where it `waits`."""

    def run() -> None:
        for call in calls:
            call()
            if waits:
                settle(device)

    return run


def at_slot(call: Call, shift: int) -> Call:
    """The call on a slot that lies `shift` bytes further."""
    arguments = {
        name: moved(value, shift) if isinstance(value, TensorPlace) else value for name, value in call.arguments.items()
    }
    outputs = {name: moved(place, shift) for name, place in call.outputs.items()}
    return msgspec.structs.replace(call, arguments=arguments, outputs=outputs)


def moved(place: TensorPlace, shift: int) -> TensorPlace:
    """The same tensor, so many bytes further in the arena."""
    return msgspec.structs.replace(place, offset=place.offset + shift)
