"""What the dashboard shows of each series: how it stands, in words, and its columns for the charts. Pure."""

import datetime
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from kernelci import trend, units
from kernelci.history import digest, slug
from kernelci.model import Unit
from kernelci.nightly.changes import Change, State
from kernelci.nightly.series import Series
from kernelci.reasons import REASONS

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


MARKS = {
    "slower": "▲", "faster": "▼", "drifting": "↗", "steady": "●", "failed": "✕", "broken": "⚠", "not measured": "○",
    "no times": "◇",
}  # fmt: skip
_FAILED = {"FAILED": "failed", "BROKEN": "broken"}
CODE = {"registers": "registers", "stack_bytes": "stack", "shared_bytes": "shared memory", "code_bytes": "code"}
MOST_CODE = 60  # changes of the machine code that a series' page tells of: the newest


def page_of(kernel: str) -> str:
    """The file of a kernel's page."""
    return f"kernel/{slug(kernel)}-{digest(kernel.encode())[:6]}.html"


def natural(text: str) -> list[tuple[int, str]]:
    """A name's place in an order in which 256x8 comes before 1024x8."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]{1,18})", text)]


def standings(every: Iterable[Series], changes: Sequence[Change]) -> tuple[Standing, ...]:
    """All rows of the overview, in the order of the series."""
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
    places, last = series.current, series.nights[-1]
    is_late = (newest - last).days > STALE_DAYS
    if not is_late and series.outcomes[-1] in _FAILED and series.time_ns[-1] is None:
        return _FAILED[series.outcomes[-1]], f"{_title(series.reasons[-1])} on {last}"
    if slow is not None:
        change, delta = slow
        state = "" if change.state is State.CONFIRMED else f", {change.state.value}"
        return "slower", f"{delta or 0:+z.1%} since {change.since}{state}"
    if not is_late and not any(series.time_ns):
        return "no times", _resources(series) or _title(series.reasons[-1])
    if is_late or not places or (newest - series.nights[places[-1]]).days > STALE_DAYS:
        return "not measured", _last_time(series)
    return _drift([math.log(series.time_ns[at] or 1.0) for at in places])


def _title(code: str) -> str:
    return REASONS[code].title if code in REASONS else code


def _resources(series: Series) -> str:
    """What compiling told of the newest night."""
    values = {name: getattr(series, name)[-1] for name in ("registers", "stack_bytes")}
    return ", ".join(f"{_amount(name, value)} {CODE[name]}" for name, value in values.items() if value is not None)


def _last_time(series: Series) -> str:
    """When it was measured last, and why the newest night was not."""
    timed = [night for night, time in zip(series.nights, series.time_ns, strict=True) if time is not None]
    why = _title(series.reasons[-1]) if series.time_ns[-1] is None else ""
    return "; ".join(part for part in (f"last on {timed[-1] if timed else series.nights[-1]}", why) if part)


def _drift(values: Sequence[float]) -> tuple[str, str]:
    """The last week against the month before it."""
    before, now = values[-RECENT - 7 : -7], values[-7:]
    if len(before) < trend.LEAST:
        return "steady", "few nights so far"
    size = math.expm1(statistics.median(now) - statistics.median(before))
    said = f"{size:+z.1%} in a month"
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
        "error": _or_none(series.error_ratio[start:]),
        "registers": _or_none(series.registers[start:]),
        "stack": _or_none(series.stack_bytes[start:]),
        "shared": _or_none(series.shared_bytes[start:]),
        "code": _or_none(series.code_bytes[start:]),
        "compile": _or_none(series.compile_s[start:]),
        "copy": _last(series.copy),
        "matmul": _last(series.matmul),
        "commits": commits,
        "commit": numbers,
        "runs": [run if run.startswith("https://") else "" for run in runs],
        "run": run_numbers,
        "failed": {
            str(at): _title(series.reasons[start + at])
            for at, time in enumerate(series.time_ns[start:])
            if time is None
        },
        "marks": marks(series, changes),
        "repository": f"https://github.com/{repository}" if repository else "",
    }


def marks(series: Series, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """What happened to a series, by night: steps of its level, confirmed changes, other drivers, compilers and code."""
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
                found.append({"night": night, "kind": "step", "text": f"level {step.size:+z.1%}"})
    pairs = zip(series.segments, series.segments[1:], strict=False)
    for at, (before, now) in enumerate(pairs, start=1):
        if before != now:
            text = _differs(series, before, now)
            found.append({"night": (series.nights[at] - _EPOCH).days, "kind": "machine", "text": text})
    return sorted([*found, *_code(series)], key=lambda each: each["night"])


def _code(series: Series) -> list[dict[str, Any]]:
    """Where what compiling told changed, from one night that has it to the next."""
    known = [at for at, value in enumerate(series.registers) if value is not None]
    found = []
    for before, now in pairwise(known):
        pairs = {name: (getattr(series, name)[before], getattr(series, name)[now]) for name in CODE}
        texts = [
            f"{CODE[name]} {_amount(name, old)} → {_amount(name, new)}"
            for name, (old, new) in pairs.items()
            if old != new
        ]
        if texts:
            found.append({"night": (series.nights[now] - _EPOCH).days, "kind": "code", "text": ", ".join(texts)})
    return found[-MOST_CODE:]


def _amount(name: str, value: float | None) -> str:
    return "unknown" if value is None else units.value(value, Unit.COUNT if name == "registers" else Unit.BYTES)


def _told(change: Change, delta: float | None) -> str:
    names = [commit[:10] for commit in change.commits]
    where = {1: "commit {}", 2: "after {}, up to {}"}.get(len(names), "").format(*names)
    size = f"{change.state.value}: {delta or 0:+z.1%}"
    return ", ".join(
        part for part in (size, where, change.said, f"until {change.until}" if change.until else "") if part
    )


def _differs(series: Series, before: int, now: int) -> str:
    old, new = series.keys[before], series.keys[now]
    names = [name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    return "; ".join(f"{name}: {getattr(old, name) or 'unknown'} → {getattr(new, name) or 'unknown'}" for name in names)


def _numbered(names: Sequence[str]) -> tuple[list[str], list[int]]:
    places: dict[str, int] = {}
    numbers = [places.setdefault(name, len(places)) for name in names]
    return list(places), numbers


def _rounded(values: Sequence[float | None], digits: int = 5) -> list[float | None]:
    if not any(value is not None for value in values):
        return [None] * len(values)
    return [None if value is None else float(f"{value:.{digits}g}") for value in values]


def _or_none(values: Sequence[float | None]) -> list[float | None]:
    """The values; no list where no night has any."""
    return list(values) if any(value is not None for value in values) else []


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value), None)
