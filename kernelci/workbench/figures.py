"""What a case's blocks come to: the figures of a benchmark row, and the reason where they can't be trusted."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from msgspec.structs import replace

from kernelci import stats
from kernelci.errors import Stop
from kernelci.model import Metric, Unit, number
from kernelci.reference import Cost
from kernelci.workbench import clock
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead, Time, Window
from kernelci.workbench.contest import SHORTER, Block, fastest, log_ratios, named

NOISY_SHARE = 0.5
CONFIRMED = 0.05  # the p with which the referee's clock must show an effect of its own
EVENTS_OVER_NOISE = 5.0  # a warm window is shown where it lasts this many times what the events themselves cost


def windows(blocks: Sequence[Block], name: str) -> list[Window]:
    """All windows of a side ("head"), or of one kind of a side's ("head.short"), in the blocks that count."""
    return [window for block in blocks if not block.dropped for window in block.windows.get(name, ())]


def checked_time(blocks: Sequence[Block], side: str, calibration: Calibration, cost: Cost, dtype: str) -> Time:
    """A side's time of a call. Raises Stop: the clocks disagree, short windows don't fit, or it is impossible."""
    full = windows(blocks, side)
    if sum(block.noisy for block in blocks) > NOISY_SHARE * len(blocks):
        raise Stop("not-quiet", "the referee's own kernels ran slower than usual between windows: something computes")
    if not full:
        why = next((block.dropped for block in blocks if block.dropped), "there is none")
        raise Stop("not-measured", f"no block of {side} counts: {why}")
    found = clock.time_of(full, calibration.overhead)
    shorter = [window for kind in SHORTER for window in windows(blocks, named(side, kind))]
    clock.check_line(full, shorter, calibration.overhead)
    clock.check_possible(found, calibration.least_ns(cost, dtype, full[0].calls))
    return found


def of_time(found: Time, blocks: Sequence[Block], calibration: Calibration, cost: Cost, dtype: str) -> Iterator[Metric]:
    """Head's figures alone."""
    yield time_metric("time", "time", found, "of one call on cold inputs, device only")
    yield from _beside(found, blocks)
    yield from _end_to_end(found, blocks)
    yield from _warm(blocks, calibration.overhead)
    if cost.bytes:
        rate = cost.bytes / found.ns * 1e9
        yield Metric("bandwidth", number(rate), Unit.BYTES_PER_SECOND, "bandwidth", "bytes of the case over its time")
    if cost.flops:
        yield Metric("flops", number(cost.flops / found.ns * 1e9), Unit.FLOP_PER_SECOND, "rate", "FLOP over time")
    ceiling = calibration.ceiling_ns(cost, dtype)
    if ceiling:
        yield Metric(
            "of_ceiling",
            number(ceiling / found.ns),
            Unit.FRACTION,
            "of ceiling",
            "the larger of bytes over a copy's rate and FLOP over a matmul's, both measured in this run, over the time",
        )


def time_metric(tag: str, name: str, found: Time, text: str) -> Metric:
    """A time as a metric with its interval, ns."""
    return Metric(tag, number(found.ns), Unit.NANOSECONDS, name, text, number(found.low), number(found.high))


def rooflines(ceiling_ns: float, base: Time, head: Time) -> Iterator[Metric]:
    """Which share of what the GPU reaches both sides attain; nothing where the case has no ceiling."""
    text = "the least time at the ceilings that were measured in this run, over the time"
    for side, found in (("base", base), ("head", head)) if ceiling_ns else ():
        yield Metric(f"roofline_{side}", number(ceiling_ns / found.ns), Unit.FRACTION, f"of ceiling, {side}", text)


def _beside(found: Time, blocks: Sequence[Block]) -> Iterator[Metric]:
    """The same time by the clock that the candidate can't reach, and in cycles of the SM clock then."""
    if found.narrowed:
        text = "of one call by the referee's clock alone; `time` is that of the events that agree with it"
        low, high = number(found.wall_low), number(found.wall_high)
        yield Metric("time_wall", number(found.wall_ns), Unit.NANOSECONDS, "by the referee's clock", text, low, high)
    clocks = [window.sm_clock_hz for window in windows(blocks, "head") if window.sm_clock_hz]
    if clocks:
        text = "the time in cycles of the SM clock just behind the windows"
        yield Metric("sm_cycles", number(found.ns * 1e-9 * median(clocks)), Unit.COUNT, "SM cycles", text)


def _end_to_end(found: Time, blocks: Sequence[Block]) -> Iterator[Metric]:
    each = windows(blocks, "head.each")
    if not each:
        return
    value, low, high = stats.center([window.wall_ns / window.calls for window in each])
    text = "of one call and the wait for it, launched from Python"
    yield Metric("time_end_to_end", value, Unit.NANOSECONDS, "end to end", text, low, high)
    share = max(0.0, 1 - found.ns / value)
    yield Metric("host_share", share, Unit.FRACTION, "host share", "of the end-to-end time that is not the device's")


def _warm(blocks: Sequence[Block], overhead: Overhead) -> Iterator[Metric]:
    """By the candidate's events alone, since such a window is too short for another clock: for information."""
    warm = [window for window in windows(blocks, "head.warm") if window.device_ns]
    if warm and min(window.device_ns for window in warm) > EVENTS_OVER_NOISE * overhead.device_ns:
        value, low, high = stats.center([overhead.device(window) for window in warm])
        text = "inputs in the L2; by the kernel's own events, for information"
        yield Metric("time_warm", value, Unit.NANOSECONDS, "warm", text, low, high)


class Duel:
    """Base against head over paired blocks, by both clocks."""

    def __init__(self, blocks: Sequence[Block], overhead: Overhead, end_to_end: bool = False) -> None:
        base, head = ("base.each", "head.each") if end_to_end else ("base", "head")
        both = [window for side in (base, head) for window in windows(blocks, side)]
        told = bool(both) and all(window.device_ns for window in both) and not end_to_end  # not of the host's share
        self._nothing = told and not all(overhead.device(window) for window in both)
        self._sides, self._judge = (base, head), overhead.device if told else overhead.wall
        self._slope = 0.0 if end_to_end else following(blocks, base, head, self._judge)
        costs = [replace(overhead, ns=ns).wall for ns in (overhead.ns, overhead.low, overhead.high)]
        self._walls = [(cost, self._against_itself(blocks, cost)) for cost in costs]
        self.wall = self._by_wall(blocks)
        self._aa = self._against_itself(blocks, self._judge)
        self._ratios = self._steady(blocks, base, head, self._judge)
        self.device = stats.effect(self._ratios, aa=self._aa) if told else None
        self._raw, raw_aa = (log_ratios(blocks, base, side, self._judge) for side in (head, "base'"))
        self._plain = stats.effect(self._raw, aa=raw_aa) if self._slope else None
        self._cycles = () if end_to_end else cycles(blocks, base, head, self._judge)

    def _by_wall(self, blocks: Sequence[Block]) -> stats.Effect:
        """The effect by the referee's clock. The interval holds what a window's own cost may be: where one side's
        windows are longer than the other's, that is not the same share of both."""
        middle, *others = (stats.effect(self._steady(blocks, *self._sides, cost), aa=aa) for cost, aa in self._walls)
        every = (middle, *others)
        return replace(middle, low=min(one.low for one in every), high=max(one.high for one in every))

    def _against_itself(self, blocks: Sequence[Block], cost: Callable[[Window], float]) -> tuple[float, ...]:
        """Base against base; an end-to-end time has no such series."""
        base, _ = self._sides
        return self._steady(blocks, base, f"{base}'", cost) if "." not in base else ()

    def _steady(
        self, blocks: Sequence[Block], base: str, head: str, cost: Callable[[Window], float]
    ) -> tuple[float, ...]:
        """Log-ratios without what follows the SM clock; as they are where these blocks don't show it."""
        ratios = log_ratios(blocks, base, head, cost)
        if not self._slope:
            return ratios
        seen = clocks(blocks, base, head, cost)
        if any(map(math.isnan, seen)):
            return ratios
        return tuple(time - self._slope * one for time, one in zip(ratios, seen, strict=True))

    def effect(self, again: Sequence[Block] = ()) -> stats.Effect:
        """The effect by the candidates' events, which vary less, and their p where the referee's clock shows the effect
        too; else the larger p. Raises Stop("clocks-disagree").

        Where they disagree in these blocks and not in a second contest, that was chance: then the referee's clock alone
        counts, and proves nothing.
        """
        wall, device = self.wall, self.device
        if self._nothing:
            raise Stop("clocks-disagree", "by a candidate's events a whole window took no longer than the events do")
        if device is None:
            return wall
        if _apart(wall, device):
            if not self.by_chance(again):
                raise Stop(
                    "clocks-disagree",
                    f"head against base is {wall.effect:+.2%} by the referee's clock and {device.effect:+.2%} by the "
                    "candidates' events",
                )
            return replace(wall, p=1.0)
        confirmed = wall.p <= CONFIRMED and wall.effect * device.effect > 0
        p = device.p if confirmed else max(wall.p, device.p)
        return stats.Effect(device.effect, device.low, device.high, p, device.blocks)

    def by_chance(self, again: Sequence[Block]) -> bool:
        """Whether the clocks disagree in the first contest and not in the second."""
        if self.device is None or not _apart(self.wall, self.device):
            return False
        wall = self._by_wall(again)
        return wall.blocks >= stats.MIN_BLOCKS and not _apart(wall, self.again(again))

    def plain(self) -> stats.Effect | None:
        """The effect as the times were; None where nothing of it followed the clock."""
        return self._plain

    def cycles(self) -> stats.Effect | None:
        """The effect in cycles of the SM clock; None where the clock was not seen in half of the blocks, or was another
        in the windows."""
        if self.wall.blocks < stats.MIN_BLOCKS or 2 * len(self._cycles) < self.wall.blocks:
            return None
        return stats.effect(self._cycles) if bool(stats.in_windows(self._cycles, self._raw)) else None

    def again(self, blocks: Sequence[Block]) -> stats.Effect:
        """The effect that a second contest shows, by the clock that judges and with the first one's A/A series."""
        return stats.effect(self._steady(blocks, *self._sides, self._judge), aa=self._aa)

    def noise(self) -> float:
        """The noise floor that base against base shows, as a fraction; 0 where it was not measured."""
        found = stats.noise_floor(self._aa, self.wall.blocks, self._ratios)
        return found if math.isfinite(found) else 0.0

    def metrics(self, kind: str = "", again: Sequence[Block] = ()) -> Iterator[Metric]:
        """delta, noise and p, and of the call on the device cycles and blocks; `kind` is "" or "_end_to_end". Stop,
        q and floor come with all rows. `again`: of a second contest. Raises as `effect`."""
        found, noise = self.effect(again), self.noise()
        what = "end to end, " if kind else ""
        text = f"{what}head over base, less one"
        low, high = number(found.low), number(found.high)
        yield Metric(f"delta{kind}", number(found.effect), Unit.FRACTION, f"{what}delta", text, low, high)
        text = "95 % of base against base lie below"
        yield Metric(f"noise{kind}", noise, Unit.FRACTION, f"{what}noise floor", text)
        text = "two-sided, of no effect; shown by both clocks"
        yield Metric(f"p{kind}", found.p, Unit.FRACTION, f"{what}p", text)
        if not kind:
            yield Metric("blocks", found.blocks, Unit.COUNT, "blocks", "paired, each with fresh processes")
        by_cycles = self.cycles()
        if by_cycles is not None:
            yield _delta("cycles", "delta, cycles", "head over base, less one, in cycles of the SM clock", by_cycles)
        if self._plain is not None:
            yield _delta("plain", "delta, with the clock's", "head over base, less one, as the times were", self._plain)
            text = "how far times follow changes of the SM clock, which delta leaves out"
            yield Metric("follows_clock", -self._slope, Unit.FRACTION, "follows the clock", text)

    def metrics_again(self, blocks: Sequence[Block], kind: str = "") -> Iterator[Metric]:
        """What a second contest shows; nothing where there was none, or too little of it counts."""
        found = self.again(blocks)
        if found.blocks >= stats.MIN_BLOCKS:
            what = "end to end, " if kind else ""
            yield _delta(f"again{kind}", f"{what}delta, again", f"{what}head over base, less one, once more", found)
            yield Metric(f"blocks_again{kind}", found.blocks, Unit.COUNT, f"{what}blocks, again", "of that contest")


def _apart(wall: stats.Effect, device: stats.Effect) -> bool:
    """Whether the candidates' events show what the referee's clock rules out."""
    low, high = (1 + wall.low) * (1 - clock.AGREE), (1 + wall.high) * (1 + clock.AGREE)
    return not low <= 1 + device.effect <= high


def _delta(tag: str, name: str, text: str, found: stats.Effect) -> Metric:
    return Metric(tag, number(found.effect), Unit.FRACTION, name, text, number(found.low), number(found.high))


def cycles(blocks: Sequence[Block], base: str, head: str, cost: Callable[[Window], float]) -> tuple[float, ...]:
    """ln(head / base) in cycles, of each block that counts and in whose fastest windows the SM clock was seen."""
    taken = [
        (cost(one) * one.sm_clock_hz, cost(other) * other.sm_clock_hz)
        for one, other in fastest(blocks, base, head, cost)
    ]
    return tuple(math.log(after / before) for before, after in taken if min(before, after) > 0)


def clocks(blocks: Sequence[Block], base: str, head: str, cost: Callable[[Window], float]) -> tuple[float, ...]:
    """ln(head / base) of the SM clocks in those windows; where one was not seen, the median of the others. All nan
    where less than half were seen."""
    pairs = [(one.sm_clock_hz, other.sm_clock_hz) for one, other in fastest(blocks, base, head, cost)]
    known = [math.log(after / before) for before, after in pairs if min(before, after) > 0]
    usual = median(known) if known and 2 * len(known) >= len(pairs) else math.nan
    return tuple(
        math.log(after / before) if min(before, after) > 0 and not math.isnan(usual) else usual
        for before, after in pairs
    )


def following(blocks: Sequence[Block], base: str, head: str, cost: Callable[[Window], float]) -> float:
    """How the times of these blocks follow the SM clock, by `stats.following`."""
    sides = (head, f"{base}'")
    times = [log_ratios(blocks, base, side, cost) for side in sides]
    seen = [clocks(blocks, base, side, cost) for side in sides]
    return float(stats.following(times[0], seen[0], times[1], seen[1]))
