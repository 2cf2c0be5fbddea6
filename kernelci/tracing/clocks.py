"""Multiprocessors' clocks on one time axis: each track has the global timer and the clock at both of its ends."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct

from kernelci.tracing.records import Recorded

SLOWEST, FASTEST = 0.05, 10.0  # cycles per ns that a GPU may have
STEPS = 50  # of the timer that the anchors must span, for a rate within a few per cent
Anchor = tuple[int, int]


class Axis(Struct, frozen=True):
    """Nanoseconds from cycles, by multiprocessor: from a clock of its own, and the time that this one stands for.

    `step_ns`: what the timer counts in; two multiprocessors' times are no closer to each other than that, while times
    of one are exact to a cycle. `measured`: whether the rate is, or was given.
    """

    cycles_per_ns: float
    origins: dict[int, tuple[int, float]]
    step_ns: int
    measured: bool

    def ns(self, sm: int, clock: int) -> float:
        """Nanoseconds since the earliest track's beginning."""
        origin, offset = self.origins[sm]
        return (clock - origin) / self.cycles_per_ns + offset  # integers first: a clock has more digits than a float


def align(tracks: Iterable[Recorded], fallback_cycles_per_ns: float = 1.0) -> Axis:
    """The axis of these tracks; where their anchors span too little for a rate, it is the one given."""
    anchors: dict[int, list[Anchor]] = defaultdict(list)
    for track in tracks:
        anchors[track.sm].append((track.begin, track.timer_begin))
        if track.is_ended:
            anchors[track.sm].append((track.end, track.timer_end))
    timers = sorted({timer for pairs in anchors.values() for _, timer in pairs})
    if not timers:
        return Axis(fallback_cycles_per_ns, {}, 1, measured=False)
    step = min((after - before for before, after in pairwise(timers)), default=1)
    rate = _rate(list(anchors.values())) if timers[-1] - timers[0] >= STEPS * step else 0.0
    measured = SLOWEST <= rate <= FASTEST
    rate = rate if measured else fallback_cycles_per_ns
    origins = {sm: _origin(pairs, rate, timers[0]) for sm, pairs in anchors.items()}
    first = min((clock - origins[sm][0]) / rate + origins[sm][1] for sm, pairs in anchors.items() for clock, _ in pairs)
    return Axis(rate, {sm: (clock, ns - first) for sm, (clock, ns) in origins.items()}, step, measured)


def _rate(groups: list[list[Anchor]]) -> float:
    """Cycles per ns, by least squares about each multiprocessor's own mean."""
    product = square = 0.0
    for pairs in groups:
        clock0, timer0 = pairs[0]
        near = [(clock - clock0, timer - timer0) for clock, timer in pairs]
        clock_mean, timer_mean = (sum(values) / len(near) for values in zip(*near, strict=True))
        product += sum((timer - timer_mean) * (clock - clock_mean) for clock, timer in near)
        square += sum((timer - timer_mean) ** 2 for _, timer in near)
    return product / square if square else 0.0


def _origin(pairs: list[Anchor], rate: float, start: int) -> tuple[int, float]:
    """The median offset over the anchors, which no single odd one moves."""
    origin = pairs[0][0]
    found = sorted(timer - start - (clock - origin) / rate for clock, timer in pairs)
    return origin, found[len(found) // 2]
