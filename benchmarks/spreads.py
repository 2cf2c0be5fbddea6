"""How much each recorded row varies: from block to block, between processes, by one clock or another.

For benchmarks/verdicts_power.py; the recording is of benchmarks/record_blocks.py.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from blocks_file import Pair, Pairs, Recorded, Recording
from msgspec import Struct
from numpy.typing import NDArray

from kernelci import stats

CONTROL = stats.LOOKS.deciding  # blocks of the A/A series: it runs up to the first look that decides
EVENTS, WALL, CYCLES, WALL_CLOCK = 0, 1, 2, 3
NARROW = 0.003  # what 95 % of the effects of equal sides should lie within
Array = NDArray[np.float64]


class Spread(Struct, frozen=True):
    """A row's noise, as standard deviations of one block's log-ratio of base and base, by one figure or another."""

    row: str
    windows: int
    """A side and block."""
    block: float
    """By the fastest windows' events, as a run takes it."""
    middle: float
    """By the mean of all windows; 0: not recorded."""
    cycles: float
    steady: float
    """By the fastest windows' events, without what follows the SM clock, as a run takes it where that is clear."""
    wall: float
    processes: float
    """Between sets of processes, beyond what blocks of one set differ by."""
    effects: float
    """95 % of the effects of 12 blocks lie within, as a run takes them."""
    narrow: float
    """The share of those effects within NARROW."""
    apart: float
    """The clocks, in the median."""
    do_bench: float
    """Its largest difference between equal sides."""


def ratios(pairs: Sequence[Pair]) -> Array:
    """ln(head / base) of each block."""
    return np.asarray(stats.paired([base for base, _ in pairs], [head for _, head in pairs]))


def channels(row: Recorded, slowdown: str) -> Array:
    """Log-ratios of each block by events, by the referee's clock, in cycles, and of the clock in the windows that are
    fastest by the referee's: [blocks, 4]. What was not recorded is as by events; clocks and cycles are nan where those
    of less than half of the blocks are known, and else blocks without them are left out."""
    events = ratios(row.events.of(slowdown))
    wall = ratios(row.wall.of(slowdown)) if row.wall.aa else events
    clocks = [
        _clocks(pairs, slowdown, len(events))
        for pairs in (row.clock, row.wall_clock if row.wall_clock.aa else row.clock)
    ]
    known: Any = ~np.isnan(clocks).any(axis=0)
    if 2 * known.sum() >= len(known):
        events, wall, clocks = events[known], wall[known], [each[known] for each in clocks]
    else:
        clocks = [np.full_like(events, np.nan)] * 2
    return np.column_stack([events, wall, events + clocks[0], clocks[1]])


def _clocks(pairs: Pairs, slowdown: str, blocks: int) -> Array:
    """ln(head / base) of the clocks; nan where one was not seen."""
    seen = np.asarray(pairs.of(slowdown) if pairs.aa else [(np.nan, np.nan)] * blocks, dtype=np.float64)
    seen[seen == 0] = np.nan
    return np.asarray(np.log(seen[:, 1] / seen[:, 0]))


def following(series: Array, control: Array) -> Array:
    """How times follow the clock, by `stats.following`, of log-ratios [..., blocks, channel] to [...]."""
    seen, aa_seen = (both[..., CYCLES] - both[..., EVENTS] for both in (series, control))
    return stats.following(series[..., EVENTS], seen, control[..., EVENTS], aa_seen)


def steadied(series: Array, slope: Array) -> Array:
    """The same without what follows the clock; cycles as they are."""
    found = series.copy()
    clocks = {EVENTS: series[..., CYCLES] - series[..., EVENTS], WALL: series[..., WALL_CLOCK]}
    for channel, clock in clocks.items():
        found[..., channel] -= slope[..., None] * np.nan_to_num(clock)
    return found


def spreads(recording: Recording, seed: int, times: int = 4000) -> list[Spread]:
    """Each row's noise, the effects resampled from its A/A blocks."""
    draw = np.random.default_rng(seed)
    found = []
    for row in recording.rows:
        by = channels(row, "0")
        aa = ratios(row.aa)
        series, control = by[draw.integers(0, len(by), (2, times, CONTROL))]
        effects = np.abs(stats.effects(steadied(series, following(series, control))[..., EVENTS])[0])
        wall = np.asarray(row.wall.aa or row.aa) / np.asarray(row.aa)
        found.append(
            Spread(
                row.row,
                2 * row.rounds,
                float(aa.std(ddof=1)),
                _middle(row),
                float(by[:, CYCLES].std(ddof=1)),
                float(steadied(by, following(by, by))[:, EVENTS].std(ddof=1)),
                float(by[:, WALL].std(ddof=1)),
                between(aa, np.asarray(row.sets)),
                float(np.quantile(effects, 0.95)),
                float((effects <= NARROW).mean()),
                float(np.median(np.abs(wall - 1))),
                max((abs(head / base - 1) for base, head in row.do_bench), default=0.0),
            )
        )
    return found


def _middle(row: Recorded) -> float:
    """The spread of base against base by the mean of all of a block's windows."""
    means = []
    for block in row.blocks:
        sides = [[one.device_ns or one.wall_ns for one in block.windows if one.side == side] for side in ("base", "0")]
        if not block.dropped and all(sides):
            means.append(float(np.log(np.mean(sides[1]) / np.mean(sides[0]))))
    return float(np.std(means, ddof=1)) if len(means) > 1 else 0.0


def between(values: Array, sets: NDArray[np.int64]) -> float:
    """The standard deviation between sets, beyond what chance within them explains (one-way analysis of variance)."""
    groups = [values[sets == each] for each in np.unique(sets)] if len(sets) == len(values) else []
    groups = [each for each in groups if len(each) > 1]
    if len(groups) < 2:
        return 0.0
    sizes = np.asarray([len(each) for each in groups])
    inside = sum(float(((each - each.mean()) ** 2).sum()) for each in groups) / (sizes.sum() - len(groups))
    means = np.asarray([each.mean() for each in groups])
    return float(max(means.var(ddof=1) - inside * np.mean(1 / sizes), 0.0) ** 0.5)
