"""What the dashboard shows of each series: how it stands, in words, and its columns for the charts. Pure."""

import datetime
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from kernelci import trend, units
from kernelci.history import digest, slug
from kernelci.model import Unit
from kernelci.nightly.changes import Change, State
from kernelci.nightly.series import Series

RECENT, STALE_DAYS, DRIFT = 30, 3, 0.01
MOST_POINTS = 800
_EPOCH = datetime.date(1970, 1, 1)


class Standing(Struct, frozen=True):
    """A row of the overview. `word` alone says how it stands; `mark` is its sign, for those who see it."""

    kernel: str
    case: str
    gpu: str
    page: str
    """The kernel's page, and the row's place in it."""
    word: str
    mark: str
    said: str
    attained: str
    share: float
    time: str
    spark: str
    """Points of the last nights within 100 by 20, as SVG takes them."""


MARKS = {"slower": "▲", "faster": "▼", "drifting": "↗", "steady": "●", "failed": "✕", "not measured": "○"}


def page_of(kernel: str) -> str:
    """The file of a kernel's page."""
    return f"kernel/{slug(kernel)}-{digest(kernel.encode())[:6]}.html"


def standings(every: Iterable[Series], changes: Sequence[Change]) -> tuple[Standing, ...]:
    """All rows of the overview: by kernel, GPU and case."""
    every = tuple(every)
    newest = max((series.nights[-1] for series in every), default=_EPOCH)
    slow = {
        (change.kernel, row.case, row.gpu): (change, row.delta)
        for change in changes
        if change.state.is_open
        for row in change.rows
        if row.back is not True
    }
    return tuple(_standing(series, slow.get(series.id), newest) for series in every)


def _standing(series: Series, slow: tuple[Change, float | None] | None, newest: datetime.date) -> Standing:
    word, said = _stands(series, slow, newest)
    places = series.current
    last = places[-1] if places else None
    share = series.of_ceiling[last] if last is not None else None
    time = series.time_ns[last] if last is not None else None
    return Standing(
        *series.id, f"{page_of(series.kernel)}#{anchor(series)}", word, MARKS[word], said,
        "" if share is None else f"{share:.0%}", share or 0.0,
        "" if time is None else units.value(time, Unit.NANOSECONDS), spark(series),
    )  # fmt: skip


def _stands(series: Series, slow: tuple[Change, float | None] | None, newest: datetime.date) -> tuple[str, str]:
    if series.outcomes[-1] in ("FAILED", "BROKEN") and series.time_ns[-1] is None:
        return "failed", f"{series.reasons[-1]} on {series.nights[-1]}"
    if slow is not None:
        change, delta = slow
        state = "" if change.state is State.CONFIRMED else f", {change.state.value}"
        return "slower", f"{delta or 0:+.1%} since {change.since}{state}"
    places = series.current
    if not places or (newest - series.nights[places[-1]]).days > STALE_DAYS:
        return "not measured", f"last on {series.nights[places[-1]]}" if places else series.reasons[-1]
    return _drift([math.log(series.time_ns[at] or 1.0) for at in places])


def _drift(values: Sequence[float]) -> tuple[str, str]:
    """The last week against the month before it."""
    before, now = values[-RECENT - 7 : -7], values[-7:]
    if len(before) < trend.LEAST:
        return "steady", "few nights so far"
    size = math.expm1(statistics.median(now) - statistics.median(before))
    said = f"{size:+.1%} in a month"
    if abs(size) <= max(DRIFT, trend.level(before)[1]):
        return "steady", said
    return ("drifting" if size > 0 else "faster"), said


def spark(series: Series) -> str:
    """The last nights' times as points of a line; nothing where there are fewer than two."""
    times = [series.time_ns[at] or 0.0 for at in series.current[-RECENT:]]
    if len(times) < 2:
        return ""
    middle = statistics.median(times)
    low, high = min(*times, middle * 0.98), max(*times, middle * 1.02)
    step = 100 / (len(times) - 1)
    return " ".join(f"{at * step:.0f},{20 - 20 * (time - low) / (high - low):.0f}" for at, time in enumerate(times))


def anchor(series: Series) -> str:
    """What names a series on its kernel's page."""
    return f"r{digest(chr(10).join(series.id).encode())[:8]}"


def columns(series: Series, changes: Sequence[Change], repository: str = "") -> dict[str, Any]:
    """A series as the charts take it: nights as days since 1970, times in ns, what happened as marks with words."""
    start = max(len(series.nights) - MOST_POINTS, 0)
    commits, numbers = _numbered(series.commits[start:])
    runs, run_numbers = _numbered(series.runs[start:])
    return {
        "id": anchor(series),
        "case": series.case,
        "gpu": series.gpu,
        "night": [(night - _EPOCH).days for night in series.nights[start:]],
        "time": _rounded(series.time_ns[start:]),
        "low": _rounded(series.low_ns[start:]),
        "high": _rounded(series.high_ns[start:]),
        "share": _rounded(series.of_ceiling[start:], 4),
        "psnr": _rounded(series.psnr_db[start:], 4),
        "flops": _rounded(series.flops[start:], 4),
        "bandwidth": _rounded(series.bandwidth[start:], 4),
        "copy": _last(series.copy),
        "matmul": _last(series.matmul),
        "commits": commits,
        "commit": numbers,
        "runs": [run if run.startswith("https://") else "" for run in runs],
        "run": run_numbers,
        "failed": {
            str(at): series.reasons[start + at] for at, time in enumerate(series.time_ns[start:]) if time is None
        },
        "marks": marks(series, changes),
        "repository": f"https://github.com/{repository}" if repository else "",
    }


def marks(series: Series, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """What happened to a series, by night: steps of its level, confirmed changes, other drivers and compilers."""
    found: list[dict[str, Any]] = [
        {"night": (row.since - _EPOCH).days, "kind": "change", "text": _told(change, row.delta)}
        for change in changes
        for row in change.rows
        if (change.kernel, row.case, row.gpu) == series.id
    ]
    known = {mark["night"] for mark in found}
    for segment in dict.fromkeys(series.segments):
        places = series.within(series.nights[series.segments.index(segment)])
        for step in trend.steps([math.log(series.time_ns[at] or 1.0) for at in places]):
            night = (series.nights[places[step.at]] - _EPOCH).days
            if not any(abs(night - other) <= 5 for other in known):
                found.append({"night": night, "kind": "step", "text": f"level {step.size:+.1%}"})
    pairs = zip(series.segments, series.segments[1:], strict=False)
    for at, (before, now) in enumerate(pairs, start=1):
        if before != now:
            text = _differs(series, before, now)
            found.append({"night": (series.nights[at] - _EPOCH).days, "kind": "machine", "text": text})
    return sorted(found, key=lambda each: each["night"])


def _told(change: Change, delta: float | None) -> str:
    return f"{change.state.value}: {delta or 0:+.1%}{f', {change.said}' if change.said else ''}"


def _differs(series: Series, before: int, now: int) -> str:
    old, new = series.keys[before], series.keys[now]
    names = [name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    return "; ".join(f"{name}: {getattr(old, name) or 'unknown'} → {getattr(new, name) or 'unknown'}" for name in names)


def _numbered(names: Sequence[str]) -> tuple[list[str], list[int]]:
    places: dict[str, int] = {}
    numbers = [places.setdefault(name, len(places)) for name in names]
    return list(places), numbers


def _rounded(values: Sequence[float | None], digits: int = 5) -> list[float | None]:
    return [None if value is None else float(f"{value:.{digits}g}") for value in values]


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value), None)
