"""Blocks as a contest leaves them, made up: base and head, and base against itself, with some noise."""

import random
from collections.abc import Sequence

from kernelci.model import Metric
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Block

COST = Overhead(30_000.0, 29_000.0, 31_000.0, 1_000.0, 5_000.0, 400.0)
CALLS, NS = 1000, 20_000.0


def window(ns: float = NS, calls: int = CALLS, wall: float = 1.0, device: float = 1.0) -> Window:
    """A window of calls of `ns`, as each clock tells it by a factor; device 0: no events."""
    return Window(calls, COST.ns + calls * ns * wall, (COST.device_ns + calls * ns * device) if device else 0.0)


def of_windows(**windows: Sequence[Window]) -> Block:
    """A block of windows by name: `head_short` for `head.short`, and `baseprime` for base beside itself."""
    return Block({name.replace("_", ".").replace("prime", "'"): list(some) for name, some in windows.items()})


def pairs(
    ratio: float = 1.0, blocks: int = 12, noise: float = 0.001, wall: float = 0.0, device: float = 1.0
) -> list[Block]:
    """Blocks in which head takes `ratio` times as long; `wall`: more noise of the referee's clock; `device`: what the
    candidates' events make of head's time."""
    draw = random.Random(1)

    def one(ns: float, told: float) -> list[Window]:
        return [window(ns, wall=1 + wall * draw.uniform(-1, 1), device=told) for _ in range(2)]

    found = []
    for number in range(blocks):
        base, head, again = (NS * (1 + noise * draw.uniform(-1, 1)) for _ in range(3))
        sides = {"base": one(base, bool(device)), "head": one(ratio * head, device)}
        found.append(Block(sides | ({"base'": one(again, bool(device))} if number < 4 else {})))
    return found


def by_tag(metrics: Sequence[Metric]) -> dict[str, Metric]:
    """Metrics by what they are called."""
    return {metric.tag: metric for metric in metrics}
