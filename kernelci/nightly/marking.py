"""What somebody says of a change: that they answer for it, that the machine did it, or that it is none."""

import datetime

import msgspec

from kernelci import inert
from kernelci.errors import ConfigError
from kernelci.history import EVENTS, Event, event_file
from kernelci.nightly.branch import Change, Edit, Snapshot
from kernelci.nightly.changes import NEAR_DAYS

SHOWN = 5


def marking(event: Event, today: datetime.date) -> Change:
    """The edit that adds the words. It raises ConfigError for a change that the history does not know."""
    if event.until is not None and event.kind != "acknowledged":
        raise ConfigError(f"--until goes with --as acknowledged, not {event.kind}", hint="leave --until out")
    if event.until is not None and event.until < today:
        raise ConfigError(f"--until {event.until} is over", hint="name a day that is still to come")

    def edit(now: Snapshot) -> Edit:
        slower = [each for each in _events(now) if each.verdict == "SLOWER"]
        if not any(_is_of(each, event) for each in slower):
            raise ConfigError(
                f"no change of {event.kernel} {event.case} on {event.gpu} is known to begin about {event.since}",
                hint=_known(slower, event),
            )
        path, data = event_file([event])
        return Edit(
            {path: data} if path not in now.tree else {}, (), f"{event.kind}: {event.kernel} {event.case}"[:200]
        )

    return edit


def _is_of(known: Event, event: Event) -> bool:
    """As `changes` tells whether words are about a change."""
    same = (known.kernel, known.case, known.gpu) == (event.kernel, event.case, event.gpu)
    return same and abs((known.since - event.since).days) <= NEAR_DAYS


def _known(slower: list[Event], event: Event) -> str:
    """What could have been meant: the kernel's changes, else all; the newest first."""
    of_kernel = [each for each in slower if each.kernel == event.kernel] or slower
    rows = {f"{each.kernel} {each.case} on {each.gpu} since {each.since}": None for each in reversed(of_kernel)}
    return f"known: {'; '.join(inert.line(row, 200) for row in list(rows)[:SHOWN])}" if rows else "none is known so far"


def _events(now: Snapshot) -> list[Event]:
    decode = msgspec.json.Decoder(Event).decode_lines
    paths = sorted(path for path in now.tree if path.startswith(f"{EVENTS}/"))
    return sorted((event for data in now.read(paths) for event in decode(data)), key=lambda each: each.night)
