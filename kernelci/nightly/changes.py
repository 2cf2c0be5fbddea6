"""The changes that a history knows: what was confirmed, on which rows, and how each stands tonight. Pure.

A change is one kernel's slowing on one or more rows (case and GPU) at about the same time. Nothing is a change that no
paired measurement has confirmed.
"""

import datetime
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kernelci import trend
from kernelci.history import Event, digest
from kernelci.nightly.detect import dated
from kernelci.nightly.series import Series

GREEN, MOST_GREEN = 3, 30  # trusted nights after which a change counts as fixed; noisy rows need more
BEFORE = 30
NEAR_DAYS = 10  # rows whose changes begin within so many days are one change
AGAIN_DAYS = 30  # what is slow again so soon after its end is the same change


class State(StrEnum):
    """How a change stands."""

    NEW = "new"
    CONFIRMED = "confirmed"
    ACKNOWLEDGED = "acknowledged"
    FIXED = "fixed"
    ENVIRONMENT = "environment"
    FALSE = "false alarm"

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to look at it, or has said for how long nobody has to."""
        return self in (State.NEW, State.CONFIRMED, State.ACKNOWLEDGED)


class Row(Struct, frozen=True):
    """One row of a change: when it began, by how much (the pair's answer), and how it stands.

    `back`: None where no trusted night tells, as after a new driver.
    """

    case: str
    gpu: str
    since: datetime.date
    good: str
    bad: str
    delta: float | None
    low: float | None
    high: float | None
    back: bool | None
    trusted: datetime.date | None
    """The newest night with data that can be trusted."""


class Change(Struct, frozen=True):
    """One slowing of a kernel. `id` stays the same whatever is found out later."""

    id: str
    kernel: str
    since: datetime.date
    state: State
    rows: tuple[Row, ...]
    commits: tuple[str, ...] = ()
    """One: the commit that did it, as bisected; two: it lies after the first, up to the second."""
    said: str = ""
    """Why it is acknowledged or false, in somebody's words."""
    until: datetime.date | None = None


class _Group(Struct):
    kernel: str
    events: list[Event]


def changes(every: Iterable[Series], events: Sequence[Event], today: datetime.date) -> tuple[Change, ...]:
    """All changes, the oldest first."""
    by_id = {series.id: series for series in every}
    groups: list[_Group] = []
    for event in sorted((each for each in events if each.verdict == "SLOWER"), key=_order):
        group = next((each for each in reversed(groups) if _joins(each, event)), None)
        if group is None:
            groups.append(_Group(event.kernel, [event]))
        else:
            group.events.append(event)
    return tuple(_change(group, events, by_id, today) for group in groups)


def _order(event: Event) -> tuple[datetime.date, str, str, str]:
    return event.night, event.kernel, event.case, event.gpu


def _joins(group: _Group, event: Event) -> bool:
    """Whether an event is of a change that is known: it began with its rows, or is the same row again."""
    if group.kernel != event.kernel:
        return False
    near = any(abs((each.since - event.since).days) <= NEAR_DAYS for each in group.events)
    again = any(
        (each.case, each.gpu) == (event.case, event.gpu) and 0 <= (event.since - each.night).days <= AGAIN_DAYS
        for each in group.events
    )
    return near or again


def _change(
    group: _Group, events: Sequence[Event], by_id: Mapping[tuple[str, str, str], Series], today: datetime.date
) -> Change:
    first = group.events[0]
    newest = {(event.case, event.gpu): event for event in group.events}  # the last answer on each row
    rows = tuple(_row(event, by_id.get((event.kernel, event.case, event.gpu))) for _, event in sorted(newest.items()))
    said = [each for each in events if each.kernel == group.kernel and _is_about(each, group)]
    words = next((each for each in reversed(said) if each.kind in ("acknowledged", "false", "environment")), None)
    dates = next((each for each in reversed(said) if each.kind == "dated"), None)
    # The first event never changes, and so neither does what names the change.
    name = digest(f"{first.kernel}\n{first.case}\n{first.gpu}\n{first.night}".encode())[:12]
    commits = (dates.bad,) if dates else tuple(each for each in (first.good, first.bad) if each)
    return Change(
        name, group.kernel, min(row.since for row in rows), _state(rows, words, dates is not None, today), rows,
        commits,
        words.text if words else "", words.until if words else None,
    )  # fmt: skip


def _is_about(event: Event, group: _Group) -> bool:
    """Whether words, or a date, are about a group's change: about one of its rows, from its time on."""
    rows = {(each.case, each.gpu) for each in group.events}
    near = min(abs((event.since - each.since).days) for each in group.events)
    return event.kind != "remeasured" and (event.case, event.gpu) in rows and near <= NEAR_DAYS


def _state(rows: Sequence[Row], words: Event | None, is_dated: bool, today: datetime.date) -> State:
    if words is not None and words.kind == "false":
        return State.FALSE
    if words is not None and words.kind == "environment":
        return State.ENVIRONMENT
    if all(row.back is True for row in rows):
        return State.FIXED
    if words is not None and words.kind == "acknowledged" and (words.until is None or today <= words.until):
        return State.ACKNOWLEDGED
    seen = any(row.back is not True and row.trusted and (row.trusted - row.since).days >= GREEN for row in rows)
    return State.CONFIRMED if is_dated or seen else State.NEW


def _row(event: Event, series: Series | None) -> Row:
    if series is None:
        return _told(event, event.since, None, None)
    times = [series.nights[at] for at, time in enumerate(series.time_ns) if time is not None]
    since = dated(series, event)
    return _told(event, since, _is_back(series, since, event), times[-1] if times else None)


def _told(event: Event, since: datetime.date, back: bool | None, trusted: datetime.date | None) -> Row:
    return Row(
        event.case, event.gpu, since, event.good, event.bad, event.delta, event.low, event.high, back, trusted
    )  # fmt: skip


def _is_back(series: Series, since: datetime.date, event: Event) -> bool | None:
    """Whether the last trusted nights lie at the level before the change again: nearer to it than to what was measured.

    Only nights that were measured with what the change was are compared, so that a new driver reopens nothing and
    closes nothing: None where it is not back, and later nights were measured with something else. A night without a
    time says neither yes nor no.
    """
    places = series.within(event.night)
    times = [(series.nights[at], math.log(series.time_ns[at] or 1.0)) for at in places]
    before = [time for night, time in times if night < since][-BEFORE:]
    after = [time for night, time in times if night > event.night]
    if before and _returns(before, after, math.log1p(event.delta or 0.0)):
        return True
    return False if before and places == series.current else None


def _returns(before: Sequence[float], after: Sequence[float], size: float) -> bool:
    """Whether so many nights in a row lie nearer to the level before than to that of the change. Once is enough: what
    is slow again later is confirmed again. Half the change is three standard errors of as many nights."""
    middle, deviation = trend.level(before)
    nights = min(max(math.ceil((6 * deviation / size) ** 2), GREEN), MOST_GREEN) if size > 0 else MOST_GREEN
    ends = range(nights, len(after) + 1)
    return any(statistics.median(after[end - nights : end]) - middle < size / 2 for end in ends)
