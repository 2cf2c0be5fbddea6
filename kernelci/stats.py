"""The statistics of times, as pure functions: what differs, how surely, and when to stop measuring.

An *effect* compares head with base over paired blocks by the log-ratios of their times: what drifts slowly cancels
within a block, and a factor is the same size in both directions. Its centre is the 20 % trimmed mean, with the
standard error of Tukey & McLaughlin (Sankhya A 25, 1963): a fifth of the blocks may be outliers on either side, and
unlike the signed-rank test, whose smallest p at 12 blocks is 2/4096, its p can be small enough for 60 rows at once.

All of it works on series of a few to a few dozen values; numpy and scipy are imported when first needed.
"""

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kernelci.model import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TRIM = 0.2
CONFIDENCE = 0.95
MIN_BLOCKS = 3
AGAIN = 8  # blocks of a second contest, of what differs in the first: docs/benchmark.md
# Median absolute deviation to standard deviation; how much wider than least squares the line of Theil and Sen is; and
# what share of the degrees of freedom a median deviation leaves (its efficiency is 0.37).
_MAD_TO_SD, _THEIL_SEN, _MAD_FREEDOM = 1.4826, 1.05, 0.35
# Times follow the clock where taking that out leaves at most this share of the spread of both series, of at least so
# many blocks together: times that have nothing to do with it do so by chance in 7 of 10,000 rows of twice 8 blocks.
FOLLOWING_LEFT, FOLLOWING_BLOCKS = 0.6, 16
# Cycles that vary by more than this from block to block, and so many times as much as times, tell of the reading of the
# clock and not of the windows: times would vary with a clock that does. A reading by itself varies by 0.3 to 0.5 %.
CYCLES_VARY, CYCLES_OVER_TIMES = 0.005, 3.0


class Effect(Struct, frozen=True):
    """Head against base as a fraction (0.02: head takes 2 % longer), its interval, and the two-sided p of "no effect".

    `blocks` is how many blocks it rests on. Of fewer than three nothing is known: the interval is infinite, p is 1.
    """

    effect: float
    low: float
    high: float
    p: float
    blocks: int


class Looks(Struct, frozen=True):
    """When a comparison is looked at (in blocks), and how much of the permitted error each look may spend.

    A look before `deciding` may say SAME or nothing. The others share `alpha`, the chance of any wrong FASTER or
    SLOWER in a whole report, in equal parts (Bonferroni: never above alpha, however the looks depend on each other).
    """

    at: tuple[int, ...] = (4, 8, 12, 16, 20, 24)
    deciding: int = 12
    alpha: float = 0.001

    @property
    def budget(self) -> int:
        """The last look's blocks."""
        return self.at[-1]

    def limit(self, blocks: int) -> float:
        """The largest q with which a look at so many blocks may say FASTER or SLOWER; 0 before the deciding ones."""
        if blocks < self.deciding:
            return 0.0
        return self.alpha / sum(look >= self.deciding for look in self.at)


LOOKS = Looks()


class Line(Struct, frozen=True):
    """y = intercept + slope · x, with intervals; `residual` is the standard deviation about it, without outliers."""

    intercept: float
    slope: float
    slope_low: float
    slope_high: float
    intercept_low: float
    intercept_high: float
    residual: float


def paired(base: Sequence[float], head: Sequence[float]) -> tuple[float, ...]:
    """ln(head / base) of each block. Raises ValueError for other than positive finite times, or unequal counts."""
    times = (*base, *head)
    if len(base) != len(head):
        raise ValueError(f"{len(base)} times of base and {len(head)} of head make no pairs")
    if not all(0 < time < math.inf for time in times):
        raise ValueError("a time must be positive and finite")
    return tuple(math.log(after / before) for before, after in zip(base, head, strict=True))


def effect(log_ratios: Sequence[float], aa: Sequence[float] = ()) -> Effect:
    """The effect that paired log-ratios show.

    `aa` are log-ratios of base against base from the same job. Blocks can lie closer together than they should by luck,
    above all where there are two modes; so with `aa` the spread is at least that of both together, and has the degrees
    of freedom of both as far as their spreads agree (Satterthwaite 1946).
    """
    if len(log_ratios) < MIN_BLOCKS:
        middle = math.expm1(math.fsum(log_ratios) / len(log_ratios)) if log_ratios else 0.0
        return Effect(middle, -1.0, math.inf, 1.0, len(log_ratios))
    found = effects([log_ratios], [aa] if len(aa) >= MIN_BLOCKS else None)
    middle, low, high, p = (float(column[0]) for column in found)
    return Effect(middle, low, high, p, len(log_ratios))


def effects(log_ratios: Any, aa: Any = None) -> "tuple[Array, Array, Array, Array]":
    """As `effect`, of many series at once: arrays [..., blocks] to (effect, low, high, p), each [...]."""
    import numpy as np
    from scipy.special import stdtr, stdtrit

    values = np.asarray(log_ratios, dtype=np.float64)
    middle, spread, freedom = _trimmed(values)
    if aa is not None:
        _, other, more = _trimmed(np.asarray(aa, dtype=np.float64))
        spread, freedom = (
            np.maximum(spread, _pooled(spread, freedom, other, more)),
            _together(spread, freedom, other, more),
        )
    error = spread * _error_per_spread(values.shape[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(middle == 0, 0.0, np.abs(middle) / error)
    half = stdtrit(freedom, (1 + CONFIDENCE) / 2) * error
    return np.expm1(middle), np.expm1(middle - half), np.expm1(middle + half), 2 * stdtr(freedom, -score)


def _trimmed(values: "Array") -> "tuple[Array, Array, Any]":
    """Trimmed mean over the last axis, winsorized standard deviation, and its degrees of freedom."""
    import numpy as np

    count = values.shape[-1]
    cut = int(TRIM * count)
    ordered = np.sort(values, axis=-1)
    kept = ordered[..., cut : count - cut]
    spread = np.clip(ordered, kept[..., :1], kept[..., -1:]).std(axis=-1, ddof=1)
    return kept.mean(axis=-1), spread, count - 2 * cut - 1


def _pooled(spread: "Array", freedom: int, other: "Array", more: int) -> Any:
    """The spread of two series together, each with the weight of its degrees of freedom."""
    return ((freedom * spread**2 + more * other**2) / (freedom + more)) ** 0.5


def _together(spread: "Array", freedom: int, other: "Array", more: int) -> Any:
    """Degrees of freedom of two variances' sum: their sum where they are equal, the larger one's where they are not."""
    import numpy as np

    larger = np.maximum(spread, other)
    scale = np.where(larger > 0, larger, 1.0)
    own, others = (spread / scale) ** 2, (other / scale) ** 2
    total = own**2 / freedom + others**2 / more
    return np.where(larger > 0, (own + others) ** 2 / np.where(larger > 0, total, 1.0), freedom)


def _error_per_spread(count: int) -> float:
    kept = count - 2 * int(TRIM * count)
    return math.sqrt((count - 1) / (kept * (kept - 1)))


def following(log_ratios: Any, clocks: Any, aa: Any, aa_clocks: Any) -> "Array":
    """How times follow the clock: d ln(time) / d ln(clock), from -1 (all cycles) to 0 (none); arrays [..., blocks] of
    log-ratios of times and of clocks, head over base and base over base, to [...].

    A GPU at its power limit changes its clock by percents from window to window. `time - slope * clock` is free of
    that, as a covariate's part is taken out of an effect (Deng et al. 2013: CUPED). 0 where it would not make the
    blocks of each series lie clearly closer together (a head that changes its own clock says nothing of base), where
    there are too few of them, or where a clock is not known (nan).
    """
    import numpy as np

    times, others = np.asarray(log_ratios, dtype=np.float64), np.asarray(aa, dtype=np.float64)
    seen, aa_seen = np.asarray(clocks, dtype=np.float64), np.asarray(aa_clocks, dtype=np.float64)
    if min(times.shape[-1], others.shape[-1]) < MIN_BLOCKS or times.shape[-1] + others.shape[-1] < FOLLOWING_BLOCKS:
        return np.zeros(times.shape[:-1])
    y = np.concatenate([_centered(times), _centered(others)], axis=-1)
    x = np.concatenate([_centered(seen), _centered(aa_seen)], axis=-1)
    square = (x * x).sum(axis=-1)
    slope = np.clip((x * y).sum(axis=-1) / np.where(square > 0, square, 1.0), -1.0, 0.0)
    left = [_left(times, seen, slope), _left(others, aa_seen, slope)]
    return np.asarray(np.where(np.maximum(*left) <= FOLLOWING_LEFT, slope, 0.0))


def in_windows(log_cycles: Any, log_ratios: Any) -> "Array":
    """Whether the clock that cycles rest on was that of the windows; arrays [..., blocks] of log-ratios in cycles and
    in time to [...]. Where cycles vary far more than times it was not: behind a window with rests around it a clock may
    be anywhere."""
    import numpy as np

    cycles, times = (_trimmed(np.asarray(values, dtype=np.float64))[1] for values in (log_cycles, log_ratios))
    return np.asarray(~(cycles > np.maximum(CYCLES_VARY, CYCLES_OVER_TIMES * times)))


def _left(times: "Array", clocks: "Array", slope: "Array") -> Any:
    """The share of the times' spread that is left without what follows the clock; 1 where they don't vary."""
    import numpy as np

    before, after = _trimmed(times)[1], _trimmed(times - slope[..., None] * clocks)[1]
    return np.where(before > 0, after / np.where(before > 0, before, 1.0), 1.0)


def _centered(values: "Array") -> Any:
    import numpy as np

    return values - np.median(values, axis=-1, keepdims=True)


def equivalent(found: Effect, floor: float) -> bool:
    """Whether the whole interval lies within ± floor (two one-sided tests: Schuirmann 1987)."""
    return -floor <= found.low and found.high <= floor


def benjamini_hochberg(p_values: Sequence[float], total: int | None = None) -> tuple[float, ...]:
    """The q-value of each p (Benjamini & Hochberg 1995), in the order given.

    `total` is how many rows there will be, where not all are measured yet: those to come count as p = 1, so that a q
    can only fall when they arrive.
    """
    count = max(total or 0, len(p_values))
    order = sorted(range(len(p_values)), key=lambda index: -p_values[index])
    found, smallest = [1.0] * len(p_values), 1.0
    for rank, index in zip(range(len(p_values), 0, -1), order, strict=True):
        smallest = min(smallest, p_values[index] * count / rank)
        found[index] = smallest
    return tuple(found)


def noise_floor(aa_log_ratios: Sequence[float], blocks: int | None = None, log_ratios: Sequence[float] = ()) -> float:
    """The size, as a fraction, below which 95 % of the effects of base against base lie.

    Of comparisons with as many blocks as the series has, or with `blocks`. A bias between the sides counts in full.
    `log_ratios` of head against base tell of the spread too: four blocks alone say little of it, and what they say
    would be widened threefold for that. Infinite where the series has fewer than three blocks.
    """
    if len(aa_log_ratios) < MIN_BLOCKS:
        return math.inf
    return float(noise_floors([aa_log_ratios], blocks, [log_ratios] if len(log_ratios) >= MIN_BLOCKS else None)[0])


def noise_floors(aa_log_ratios: Any, blocks: int | None = None, log_ratios: Any = None) -> "Array":
    """As `noise_floor`, of many series at once: [..., blocks] to [...]."""
    import numpy as np
    from scipy.special import stdtr, stdtrit

    values = np.asarray(aa_log_ratios, dtype=np.float64)
    middle, spread, freedom = _trimmed(values)
    if log_ratios is not None:
        _, other, more = _trimmed(np.asarray(log_ratios, dtype=np.float64))
        spread, freedom = _pooled(spread, freedom, other, more), _together(spread, freedom, other, more)
    shift, tiny = np.abs(middle), np.finfo(np.float64).tiny
    scale = np.maximum(spread * _error_per_spread(max(blocks or values.shape[-1], MIN_BLOCKS)), tiny)
    low, high = np.zeros_like(shift), shift + scale * stdtrit(freedom, 0.975)
    for _ in range(40):  # the folded distribution has no closed quantile: halve the interval
        at = (low + high) / 2
        outside = stdtr(freedom, (shift - at) / scale) + stdtr(freedom, (-shift - at) / scale) > 0.05
        low, high = np.where(outside, at, low), np.where(outside, high, at)
    return np.asarray(np.expm1(high))


def least(floor: float, noise: float) -> float:
    """What an effect must exceed: the practical floor and the noise floor, as the sum of squares.

    Above the larger of both, since noise also carries what lies just below the practical floor over it.
    """
    return math.hypot(floor, noise)


def decide(
    found: Effect,
    q: float,
    floor: float,
    noise: float = 0.0,
    cycles: Effect | None = None,
    plain: Effect | None = None,
) -> Verdict:
    """The verdict at a look; UNKNOWN asks for more blocks.

    SLOWER and FASTER need a deciding look, an interval without zero, an effect above the `least` of the practical
    `floor` and the `noise` floor, a q within the look's limit, and `cycles`, where they are known, that show it too.
    SAME needs the whole interval within the practical floor: a noisy machine makes nothing equal.

    `plain` is the effect as the times were, where `found` is free of what followed the clock. For SLOWER and FASTER it
    must point the same way, its interval and the floor must reach as far as `found`, or a kernel could gain by lowering
    its own clock; and nothing is SAME that it shows to differ: more power for the same work costs time too.
    """
    if plain is not None and _contradicts(plain, found, floor):
        return Verdict.UNKNOWN
    apart = found.low > 0 or found.high < 0
    if apart and q <= LOOKS.limit(found.blocks) and abs(found.effect) > least(floor, noise) and q < 1:
        verdict = Verdict.SLOWER if found.effect > 0 else Verdict.FASTER
        return verdict if cycles is None or shows(cycles, verdict, floor) else Verdict.UNKNOWN
    return Verdict.SAME if equivalent(found, floor) else Verdict.UNKNOWN


def _contradicts(plain: Effect, found: Effect, floor: float) -> bool:
    """Whether the times as they were say otherwise than what is free of the clock."""
    if equivalent(found, floor):
        return (plain.low > 0 or plain.high < 0) and abs(plain.effect) > floor
    reached = plain.low - floor <= found.effect <= plain.high + floor
    return plain.effect * found.effect <= 0 or not reached


def shows(other: Effect, verdict: Verdict, floor: float) -> bool:
    """Whether another measurement bears a SLOWER or FASTER out: its interval lies beside zero on that side, and its
    effect exceeds the practical floor."""
    if verdict is Verdict.SLOWER:
        return other.low > 0 and other.effect > floor
    return verdict is Verdict.FASTER and other.high < 0 and other.effect < -floor


def center(values: Sequence[float]) -> tuple[float, float, float]:
    """The median with its interval from order statistics, which assumes nothing of the distribution.

    Up to five values can't give 95 %: then the interval is all of them. Raises ValueError where there are none.
    """
    ordered = sorted(values)
    count = len(ordered)
    if not count:
        raise ValueError("no values have no centre")
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    below, tail = 0, 0.5**count
    while tail + math.comb(count, below + 1) * 0.5**count <= (1 - CONFIDENCE) / 2:
        below += 1
        tail += math.comb(count, below) * 0.5**count
    return middle, ordered[below], ordered[count - 1 - below]


def spread(values: Sequence[float]) -> float:
    """The standard deviation by the median deviation, which half of the values may disturb; 0 for none."""
    middle = statistics.median(values) if values else 0.0
    return _MAD_TO_SD * statistics.median([abs(value - middle) for value in values]) if values else 0.0


def line(sizes: Sequence[float], walls: Sequence[float]) -> Line:
    """The line through walls (any unit) against sizes: the median of all pairs' slopes (Theil 1950, Sen 1968).

    Up to 29 % of the points may lie anywhere. Intervals follow from the residuals' median deviation, as for least
    squares; through two points they are infinite. Raises ValueError for fewer than two sizes.
    """
    import numpy as np
    from scipy.special import stdtrit

    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(walls, dtype=np.float64)
    first, second = np.triu_indices(len(x), 1)
    apart = x[first] != x[second]
    if x.shape != y.shape or not apart.any():
        raise ValueError("a line needs as many walls as sizes, and at least two different sizes")
    first, second = first[apart], second[apart]
    slope = float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    rest = y - slope * x
    intercept = float(np.median(rest))
    freedom, mean = len(x) - 2, float(x.mean())
    if not freedom:
        return Line(intercept, slope, -math.inf, math.inf, -math.inf, math.inf, 0.0)
    residual = float(_MAD_TO_SD * np.median(np.abs(rest - intercept)) * math.sqrt(len(x) / freedom))
    width = _THEIL_SEN * residual * float(stdtrit(max(_MAD_FREEDOM * freedom, 1.0), (1 + CONFIDENCE) / 2))
    about = float(((x - mean) ** 2).sum())
    by_slope, by_intercept = width / math.sqrt(about), width * math.sqrt(1 / len(x) + mean**2 / about)
    return Line(
        intercept,
        slope,
        slope - by_slope,
        slope + by_slope,
        intercept - by_intercept,
        intercept + by_intercept,
        residual,
    )
