"""What a series of nights says, as pure functions of logarithms of times: a shift, its date, creep.

A *shift* is quick and cheap to suspect, since a paired measurement decides it; *steps* need some nights more and say
when something changed. A difference of 0.01 of logarithms is one percent of time, to within a hundredth of it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

FLOOR = 0.005
BASELINE, LEAST = 30, 6  # nights that a level is taken from
# How many of the last nights are looked at together, and by how many standard errors their mean must lie off the level.
WINDOWS = (2, 3, 5, 8, 16)
SLOWER_AT, FASTER_AT = 1.5, 2.5
CLIP = 3.0  # in standard deviations: one night alone shows nothing
LEAST_SD = 0.003
_MAD_TO_SD = 1.4826
PROBED, APART = (2, 3), 1.6  # a machine's own shift is recent; a series that moved so much further moved by itself
PENALTY, LEAST_STEP, LEAST_NIGHTS = 40.0, 0.006, 4
CREEP, CREEP_NIGHTS, CREEP_BACK = 0.02, 14, (30, 90)


class Shift(Struct, frozen=True):
    """The last nights lie apart from those before: from the place `at` on, by `size` (a fraction), `score` standard
    errors."""

    at: int
    size: float
    score: float


class Step(Struct, frozen=True):
    """The level changes at a place, by a fraction."""

    at: int
    size: float


class Creep(Struct, frozen=True):
    """The level rose slowly: by `size` since about the place `at`, where it was `than` ("best", or nights ago)."""

    at: int
    size: float
    than: str


def level(values: Sequence[float]) -> tuple[float, float]:
    """Median and robust standard deviation (from the median deviation, at least LEAST_SD)."""
    middle = _median(values)
    return middle, max(_MAD_TO_SD * _median([abs(value - middle) for value in values]), LEAST_SD)


def shift(values: Sequence[float], fresh: int = 0, windows: Sequence[int] = WINDOWS) -> Shift | None:
    """The clearest shift among the last nights; None where there is none.

    `values`: one level so far as anybody knows. Nights before the place `fresh` are known to be good.
    """
    found = [one for one in (_window(values, nights, fresh) for nights in windows) if one is not None]
    return max(found, key=lambda each: abs(each.score), default=None)


def _window(values: Sequence[float], nights: int, fresh: int) -> Shift | None:
    """The shift of the last `nights`, if there is one: their mean, each clipped, against the level before."""
    begin = len(values) - nights
    if begin < max(LEAST, fresh):
        return None
    before = values[max(begin - BASELINE, 0) : begin]
    middle, deviation = level(before)
    last = [value - middle for value in values[begin:]]
    limit = CLIP * deviation
    mean = math.fsum(min(max(value, -limit), limit) for value in last) / nights
    # A level of few nights is itself uncertain; a drift that all nights of a window share does not average out.
    error = math.sqrt(deviation**2 * (1 / nights + 1.57 / len(before)) + LEAST_SD**2 / 2)
    score, size = mean / error, math.expm1(_median(last))
    enough = score > SLOWER_AT if score > 0 else score < -FASTER_AT
    # Both ends must take part: a single night far out is an outlier however long the window is.
    same = sum((value > 0) == (score > 0) for value in last) * 3 >= 2 * nights
    return Shift(begin, size, score) if enough and same and abs(size) > FLOOR else None


def together(shifts: Sequence[Shift], series: int, probe: float) -> float:
    """By how much the machine itself moved tonight (a fraction), as a GPU's shifts tell; 0 where they are the kernels'.

    It did where most of its `series` moved the same way, or its own `probe` (a fraction; slower: above 0) moved along.
    """
    if not shifts:
        return 0.0
    slower = sum(each.size > 0 for each in shifts)
    most = max(slower, len(shifts) - slower) > series / 2 and series >= LEAST
    size = _median([each.size for each in shifts])
    along = abs(probe) > 2 * FLOOR and probe * size > 0 and abs(probe) > abs(size) / 2
    return size if most or along else 0.0


def steps(values: Sequence[float], penalty: float = PENALTY) -> tuple[Step, ...]:
    """The series as levels, by least squares with a penalty for each (Killick, Fearnhead & Eckley 2012, by ruptures).

    Outliers are replaced by the running median first (Hampel). Steps smaller than LEAST_STEP are left out.
    """
    import numpy as np
    import ruptures

    if len(values) < 2 * LEAST_NIGHTS:
        return ()
    clean = _cleaned(np.asarray(values, dtype=np.float64))
    scale = max(_MAD_TO_SD * float(np.median(np.abs(np.diff(clean)))) / math.sqrt(2), LEAST_SD / 3)
    signal = ((clean - clean.mean()) / scale).reshape(-1, 1)
    found = ruptures.KernelCPD(kernel="linear", min_size=LEAST_NIGHTS).fit(signal).predict(pen=penalty)
    ends = [0, *found]
    levels = [float(np.median(clean[begin:end])) for begin, end in pairwise(ends)]
    pairs = zip(ends[1:-1], levels, levels[1:], strict=False)
    return tuple(Step(int(at), math.expm1(now - then)) for at, then, now in pairs if abs(now - then) > LEAST_STEP)


def _cleaned(values: Any) -> Any:
    import numpy as np
    from scipy.ndimage import median_filter

    running = median_filter(values, 7, mode="nearest")
    distance = np.abs(values - running)
    return np.where(distance > CLIP * max(_MAD_TO_SD * float(np.median(distance)), LEAST_SD / 3), running, values)


def creep(values: Sequence[float]) -> Creep | None:
    """The last nights' median against the best ever and against those of 30 and 90 nights ago; the largest rise."""
    if len(values) < 2 * CREEP_NIGHTS:
        return None
    now = _median(values[-CREEP_NIGHTS:])
    ends = range(CREEP_NIGHTS, len(values) - CREEP_NIGHTS + 1, CREEP_NIGHTS // 2)
    levels = [(end - CREEP_NIGHTS, _median(values[end - CREEP_NIGHTS : end]), "best") for end in ends]
    found = [min(levels, key=lambda each: each[1])]
    for back in CREEP_BACK:
        begin = len(values) - back - CREEP_NIGHTS
        if begin >= 0:
            found.append((begin, _median(values[begin : begin + CREEP_NIGHTS]), f"{back} nights ago"))
    rises = [Creep(at, math.expm1(now - then), than) for at, then, than in found]
    best = max(rises, key=lambda each: each.size)
    _, deviation = level(values[-CREEP_NIGHTS:])
    return best if best.size > max(CREEP, 2 * deviation) else None


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
