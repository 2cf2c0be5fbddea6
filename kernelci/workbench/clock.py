"""The clock: what a window's wall time says of one call, and whether the candidate's own events may say it closer.

The referee's wall time around a window decides. Its overhead (message, launch of a graph, answer) is calibrated on a
kernel that does next to nothing, as the intercept of a line through windows of many sizes.
"""

import math
import statistics
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kernelci import stats
from kernelci.errors import Stop

AGREE = 0.005  # how far the two clocks may lie apart where the wall clock's own interval is narrower
SPREADS = 6.0  # standard deviations of a single window's overhead that a short window may lie off
LEAST_PROBED = 3  # windows, or sizes of windows, of a probe
BOOST = 0.3  # of a call's time: the highest clock over the lowest that a power limit leaves, as a share
INTERCEPT_SHARE = 0.01  # of the longest window
# Of the probe's cost, what another kernel's windows may cost more or less: mostly the change between two processes'
# contexts. Twelve rows on an H200 (2026-11-30) cost 14 % less to 22 % more, by their own events.
OTHERS = 0.25


class Window(Struct, frozen=True):
    """One `Go`: how many calls, nanoseconds by the referee's clock, by the candidate's events (a claim; 0: none), and
    of the referee's own fill just before it."""

    calls: int
    wall_ns: float
    device_ns: float
    fill_ns: float = 0.0
    sm_clock_hz: float = 0.0
    """The SM clock just behind it, by the referee's own kernel (`ticks`); 0: not known."""


class Overhead(Struct, frozen=True):
    """What a window costs beside its calls, ns, with its interval; and what a call costs that does nothing."""

    ns: float
    low: float
    high: float
    call_ns: float
    device_ns: float = 0.0
    spread: float = 0.0
    """Standard deviation of a single window."""

    @property
    def unsure_ns(self) -> float:
        """How far off it may be either way."""
        return max(self.high - self.ns, self.ns - self.low)

    def wall(self, window: Window) -> float:
        """Nanoseconds for each call of a window."""
        return max(window.wall_ns - self.ns, 0.0) / window.calls

    def device(self, window: Window) -> float:
        """The same by the candidate's events."""
        return max(window.device_ns - self.device_ns, 0.0) / window.calls

    def closest(self, window: Window) -> float:
        """The same by the candidate's events where there are any, else by the referee's clock."""
        return self.device(window) if window.device_ns else self.wall(window)

    def resolution(self, window: Window) -> float:
        """What the uncertainty of the overhead makes of the time of a call, ns."""
        return (self.high - self.low) / 2 / window.calls


def probed_overhead(probed: Sequence[Window], before: Overhead) -> Overhead:
    """The overhead while a contest runs, from windows of a probe whose events need no doubt: what the referee's clock
    shows beyond them. Without events, from a line, where there are enough sizes for one."""
    gaps = [window.wall_ns - window.device_ns + before.device_ns for window in probed if window.device_ns]
    if len(gaps) >= LEAST_PROBED:
        middle, low, high = stats.center(gaps)
        low, high = min(low, (1 - OTHERS) * middle), max(high, (1 + OTHERS) * middle)
        return replace(before, ns=max(middle, 0.0), low=max(low, 0.0), high=high, spread=statistics.stdev(gaps))
    return overhead(probed) if len({window.calls for window in probed}) >= LEAST_PROBED else before


class Time(Struct, frozen=True):
    """The time of one call, ns, with its interval; `narrowed`: the candidate's events agreed and gave the interval.

    `wall_low` and `wall_high`: the interval by the referee's clock alone, its resolution included.
    """

    ns: float
    low: float
    high: float
    wall_ns: float
    device_ns: float
    narrowed: bool
    wall_low: float = 0.0
    wall_high: float = 0.0


def overhead(windows: Sequence[Window]) -> Overhead:
    """The overhead from windows of a kernel that does next to nothing, of at least three sizes."""
    walls = stats.line([window.calls for window in windows], [window.wall_ns for window in windows])
    device = stats.line([window.calls for window in windows], [window.device_ns for window in windows])
    return Overhead(
        max(walls.intercept, 0.0),
        walls.intercept_low,
        walls.intercept_high,
        walls.slope,
        max(device.intercept, 0.0),
        walls.residual,
    )


def time_of(windows: Sequence[Window], cost: Overhead) -> Time:
    """The time of a call from windows of one size. Raises Stop("clocks-disagree")."""
    wall, low, high = stats.center([cost.wall(window) for window in windows])
    resolution = max(cost.resolution(window) for window in windows)
    low, high = max(low - resolution, 0.0), high + resolution
    device, device_low, device_high = stats.center([cost.device(window) for window in windows])
    if not any(window.device_ns for window in windows):
        return Time(wall, low, high, wall, 0.0, False, low, high)
    room = AGREE * wall
    if not low - room <= device <= high + room:
        raise Stop(
            "clocks-disagree",
            f"{wall / 1e3:.4g} µs a call ({low / 1e3:.4g} to {high / 1e3:.4g}) by the referee's clock, and "
            f"{device / 1e3:.4g} µs by the candidate's events",
        )
    return Time(device, device_low, device_high, wall, device, True, low, high)


def check_line(full: Sequence[Window], short: Sequence[Window], cost: Overhead) -> None:
    """Windows of all sizes lie on one line whose intercept is the calibrated overhead. Raises Stop("short-windows"):
    one takes longer, or less, than that explains."""
    for window, expected in off_line(full, short, cost):
        raise Stop(
            "short-windows",
            f"a window of {window.calls} calls took {window.wall_ns / 1e3:.4g} µs; by the windows of "
            f"{full[0].calls} calls it should take {expected / 1e3:.4g} µs",
        )


def off_line(
    full: Sequence[Window], short: Sequence[Window], cost: Overhead, tight: bool = False
) -> Iterator[tuple[Window, float]]:
    """The short windows that don't lie on that line, and what they should take, ns.

    A short window may be faster by what the clocks still allow before the power limit (on an H200 13 calls of a matmul
    ran 12 % faster than 56). `tight`: nothing is allowed for what the line itself is unsure by, which more windows
    will narrow.
    """
    if not full or not short:
        return
    each = stats.center([cost.wall(window) for window in full])
    longest = max(window.wall_ns for window in full)
    spread = 0.0 if tight else (each[2] - each[1]) / 2
    unsure = 0.0 if tight else (cost.high - cost.low) / 2
    room = SPREADS * cost.spread + unsure + INTERCEPT_SHARE * longest
    for window in short:
        expected = cost.ns + each[0] * window.calls
        late, most = window.wall_ns - expected, room + 3 * spread * window.calls
        if late > most or -late > most + BOOST * each[0] * window.calls:
            yield window, expected


def check_possible(time: Time, floor_ns: float) -> None:
    """No call is faster than its bytes and FLOP allow. Raises Stop("impossible-time")."""
    if time.ns < floor_ns or not math.isfinite(time.ns) or time.ns <= 0:
        raise Stop(
            "impossible-time",
            f"{time.ns / 1e3:.4g} µs a call; moving its bytes and doing its arithmetic takes {floor_ns / 1e3:.4g} µs "
            "at the least on this GPU",
        )
