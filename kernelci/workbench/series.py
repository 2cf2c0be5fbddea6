"""A series: many calls of one entry, each on its own slot of the arena (the untrusted side).

Its times are claims. What decides is the referee's own clock around a `Go`, and what lies in the slots afterwards.
"""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from kernelci.workbench.protocol import Call, Finished, Prepared, Series, TensorPlace

if TYPE_CHECKING:
    from kernelci.workbench.serving import Results

Mode = Literal["graph", "eager"]
WARM_UP_CALLS = 2  # the first compiles and tunes
# Graphs whose capture was broken off: torch's allocator goes on asking them which allocations are theirs.
_GRAPHS: list[Any] = []


def make_ready(
    message: Series, calls: Sequence[Callable[[], Any]], device: str, results: "Results | None" = None
) -> "tuple[ReadySeries | None, Prepared]":
    """Warm up on the first slot, then capture; where that is refused, no series, and why.

    `results`: the same calls, of an entry that returns its outputs, where a workspace can serve them.
    """
    for _ in range(WARM_UP_CALLS if calls else 0):
        calls[0]()
    settle(device)
    copied = ""
    try:
        if results is not None:
            try:
                return _uncopied(message, results, device)
            except _unserved() as error:
                copied = f"{type(error).__name__}: {error}"[:1000]
        if message.mode != "graph":
            run = looped(calls, message.mode == "each", device)
        else:
            run = captured(lambda: [call() for call in calls])
    except Exception as error:
        if message.mode != "graph":
            raise
        return None, Prepared(f"{type(error).__name__}: {error}"[:4000])
    return ReadySeries(run, device, message.call), Prepared(copied=copied)


def _unserved() -> tuple[type[Exception], ...]:
    """What shows that a workspace can't serve these calls: another kind of result, or too little memory."""
    import torch

    from kernelci.workbench.serving import Elsewhere

    return Elsewhere, torch.cuda.OutOfMemoryError


def _uncopied(message: Series, results: "Results", device: str) -> "tuple[ReadySeries, Prepared]":
    """A series whose results stay where they are allocated. Raises what `_unserved` tells and what capturing raises."""
    from kernelci.workbench.serving import SETTLING_RUNS

    pool = results.pool()
    if message.mode == "graph":
        run = captured(results.run, pool.id, results.first)
        return ReadySeries(run, device, message.call, results), Prepared(spots=results.settle())
    after = (lambda: settle(device)) if message.mode == "each" else None

    def served() -> None:
        with pool.serving():
            results.run(after)

    for _ in range(SETTLING_RUNS):
        served()
    settle(device)
    ready = ReadySeries(served, device, message.call, results, moving=True)
    return ready, Prepared(spots=results.settle())


class ReadySeries:
    """A series that waits for its `Go`. `results` it keeps; `moving`: they may lie elsewhere after each."""

    def __init__(
        self,
        run: Callable[[], object],
        device: str,
        call: Call,
        results: "Results | None" = None,
        moving: bool = False,
    ) -> None:
        self._run = run
        self._device = device
        self._results = results
        self._moving = moving
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
        moved = self._results.moved() if self._results is not None and self._moving else {}
        return Finished(first.elapsed_time(last) * 1e6, moved)


def usual_mode(device: str) -> Mode:
    """How the calls of a window are made where nothing speaks against it: there are no graphs on the CPU."""
    return "eager" if device == "cpu" else "graph"


def settle(device: str) -> None:
    """Wait until the device has done all of its work."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def captured(
    work: Callable[[], object], pool: Any = None, before: Callable[[], object] | None = None
) -> Callable[[], None]:
    """A CUDA graph of some work, replayed once so that it lies on the device. Raises what capturing raises.

    `pool`: where allocations come from while it is captured. `before` is done first on the same stream with ordinary
    memory, for what libraries keep for each stream must not lie in there.
    """
    import torch

    stream, graph = _side(), torch.cuda.CUDAGraph()
    if before is not None:
        with torch.cuda.stream(stream):
            before()
    _GRAPHS.append(graph)
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        work()
    _GRAPHS.remove(graph)
    replay: Callable[[], None] = graph.replay
    replay()
    torch.cuda.synchronize()
    return replay


@functools.cache
def _side() -> Any:
    """The stream that all captures of this process take place on."""
    import torch

    return torch.cuda.Stream()


def looped(calls: Sequence[Callable[[], Any]], waits: bool, device: str) -> Callable[[], None]:
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
