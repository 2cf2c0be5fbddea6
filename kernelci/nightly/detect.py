"""Which series seem to have changed tonight: what is to be measured again, and what is the machine's own.

A suspicion is cheap and often wrong; a paired measurement of the last good commit against tonight's on the same GPU
decides it. Everything here follows from the history: running it twice says the same twice.
"""

import datetime
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from kernelci import trend
from kernelci.history import Event, answered
from kernelci.nightly.series import Series

MARGIN = 8  # the good commit is this many nights before the first that looks changed
REACH = 16  # a level that was confirmed begins at most so long before the night that confirmed it
BUDGET = 20  # paired measurements a night on one GPU
PATIENCE = 14  # nights between two looks for creep


class State(Struct, frozen=True):
    """What is known of a series, as places in its values: where its level begins; up to where nothing has changed since
    then; and the last night that a change was found on, before which no other is looked for."""

    begin: int = 0
    fresh: int = 0
    known: int = 0

    def after(self, now: int, since: int, verdict: str) -> "State":
        """The state once a paired measurement at the place `now` has answered about a change at `since`."""
        if verdict in ("SLOWER", "FASTER"):
            return State(max(since, now - REACH, self.begin), now + 1, now)
        return State(self.begin, now + 1, self.known) if verdict == "SAME" else self

    def good(self, found: trend.Shift | trend.Creep) -> int:
        """The place of the night whose commit is the good one."""
        return max(found.at - MARGIN if isinstance(found, trend.Shift) else found.at, self.known, 0)


class Suspect(Struct, frozen=True):
    """A series to measure again: `good` is the commit before the change, `bad` tonight's; `size` a fraction."""

    kernel: str
    case: str
    gpu: str
    night: datetime.date
    since: datetime.date
    good: str
    bad: str
    size: float
    score: float
    kind: Literal["step", "creep"]


class Tonight(Struct, frozen=True):
    """What to measure again, the clearest first; and for which GPUs the machine itself moved, with the reason."""

    suspects: tuple[Suspect, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    left: int = 0
    """Suspects beyond the budget; they come again."""


def tonight(every: Iterable[Series], events: Sequence[Event], budget: int = BUDGET) -> Tonight:
    """What the newest night of each GPU shows."""
    by_gpu: defaultdict[str, list[Series]] = defaultdict(list)
    for series in every:
        by_gpu[series.gpu].append(series)
    known: defaultdict[tuple[str, str, str], list[Event]] = defaultdict(list)
    for event in events:
        known[event.kernel, event.case, event.gpu].append(event)
    suspects: list[Suspect] = []
    environment: list[tuple[str, str]] = []
    left = 0
    for gpu, group in sorted(by_gpu.items()):
        newest = max(series.nights[-1] for series in group)
        here = [series for series in group if series.current and series.nights[series.current[-1]] == newest]
        found = [(series, one) for series in here if (one := examine(series, known[series.id])) is not None]
        moved, why = machine(here, [one for _, one in found])
        environment += [(gpu, why)] if moved else []
        chosen = ranked([_suspect(*pair, known[pair[0].id]) for pair in found if beyond(pair[1], moved)])
        suspects += chosen[:budget]
        left += len(chosen[budget:])
    return Tonight(tuple(suspects), tuple(environment), left)


def ranked(found: Iterable[Suspect]) -> list[Suspect]:
    """Slower ones first, then the clearest; without those for which no commit came between."""
    wanted = [each for each in found if each.good != each.bad or not each.bad]
    return sorted(wanted, key=lambda each: (each.size < 0, -abs(each.score)))


def beyond(found: trend.Shift | trend.Creep, moved: float) -> bool:
    """Whether a series moved by itself on a night on which the machine moved by so much."""
    return not moved or abs(found.size) > trend.APART * abs(moved)


def examine(series: Series, events: Sequence[Event]) -> trend.Shift | trend.Creep | None:
    """What a series shows tonight, beside what is known; places are those of `series.current`."""
    places = series.current
    state = state_of(series, events)
    values = [math.log(series.time_ns[at] or 1.0) for at in places]
    last = max((event.night for event in events if event.kind == "remeasured"), default=None)
    rested = last is None or (series.nights[places[-1]] - last).days >= PATIENCE
    return look(values, state, rested)


def look(values: Sequence[float], state: State, creep: bool = True) -> trend.Shift | trend.Creep | None:
    """What the newest of these values shows: a shift, else creep; places are those of `values`."""
    start = max(state.begin, len(values) - trend.BASELINE - max(trend.WINDOWS))
    found = trend.shift(values[start:], max(state.fresh - start, 0))
    if found is not None:
        return trend.Shift(found.at + start, found.size, found.score)
    begin = max(state.begin, state.known)
    slow = trend.creep(values[begin:]) if creep else None
    return trend.Creep(slow.at + begin, slow.size, slow.than) if slow else None


def state_of(series: Series, events: Sequence[Event]) -> State:
    """What the events say of a series, in places of `series.current`."""
    nights = [series.nights[at] for at in series.current]
    state = State()
    for event in sorted(events, key=lambda each: each.night):
        if event.kind == "remeasured" and nights and event.night >= nights[0]:
            said = answered(event.verdict, event.high, event.suspected)
            state = state.after(_place(nights, event.night), _place(nights, event.since), said)
    return state


def _place(nights: Sequence[datetime.date], day: datetime.date) -> int:
    """The place of the first night that is not before a day; the last where all are."""
    return next((at for at, night in enumerate(nights) if night >= day), len(nights) - 1)


def machine(group: Sequence[Series], found: Sequence[trend.Shift | trend.Creep]) -> tuple[float, str]:
    """By how much the machine itself moved tonight, and how that shows; 0 and nothing where it did not."""
    shifts = [each for each in found if isinstance(each, trend.Shift)]
    probes = {name: _probe(group, name) for name in ("copy", "matmul")}
    for name, probe in probes.items():
        moved = trend.together(shifts, len(group), probe)
        if moved:
            seen = f"the {name} probe by {probe:+.1%}" if probe else "no probe"
            return moved, f"{len(shifts)} of {len(group)} series moved together by {moved:+.1%}, and {seen}"
    return 0.0, ""


def _probe(group: Sequence[Series], name: str) -> float:
    """By how much a probe is slower tonight (a fraction); 0 where it shows nothing.

    A night has one probe for all series of a GPU: the series with the most nights tells it.
    """
    longest = max(group, key=lambda each: len(each.current), default=None)
    column = getattr(longest, name) if longest else ()
    rates = [column[at] for at in longest.current if column[at]] if longest else []
    found = trend.shift([-math.log(rate) for rate in rates], windows=trend.PROBED)
    return found.size if found else 0.0


def _suspect(series: Series, found: trend.Shift | trend.Creep, events: Sequence[Event]) -> Suspect:
    places = series.current
    good = places[min(state_of(series, events).good(found), len(places) - 1)]
    is_step = isinstance(found, trend.Shift)
    return Suspect(
        *series.id, series.nights[places[-1]], series.nights[places[found.at]], series.commits[good],
        series.commits[places[-1]], found.size, found.score if isinstance(found, trend.Shift) else 0.0,
        "step" if is_step else "creep",
    )  # fmt: skip


def dated(series: Series, event: Event) -> datetime.date:
    """When a change began, by the levels of all nights that were measured alike: the nearest step of its sign."""
    places, size = series.within(event.night), event.delta or 0.0
    if sum(series.nights[at] >= event.since for at in places) < trend.LEAST_NIGHTS:
        return event.since
    steps = trend.steps([math.log(series.time_ns[at] or 1.0) for at in places])
    nights = [series.nights[places[step.at]] for step in steps if step.size * size > 0]
    nearest = min(nights, key=lambda night: abs((night - event.since).days), default=event.since)
    return nearest if abs((nearest - event.since).days) <= REACH else event.since
