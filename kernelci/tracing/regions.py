"""Tracks: what each warp was in, from its beginning to its end. What does not match is told, and the rest kept."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kernelci.tracing import clocks
from kernelci.tracing.records import Buffer, Event, Recorded

GAP = ""  # the name of what lies in no region


class Region(Struct, frozen=True):
    """A named part of a track's time; within others where `depth` is above 0."""

    name: str
    begin_ns: float
    end_ns: float
    depth: int = 0


class Track(Struct, frozen=True):
    """One warp's life. Regions are in the order in which they begin, and each lies within its parent or in none."""

    sm: int
    block: int
    warp: int
    begin_ns: float
    end_ns: float
    regions: tuple[Region, ...] = ()
    launch: int = 0

    @property
    def lifetime_ns(self) -> float:
        """From its beginning to its end."""
        return self.end_ns - self.begin_ns

    def pieces(self) -> list[Region]:
        """The lifetime cut so that nothing overlaps: each piece is the innermost region's there, or none's (GAP)."""
        found: list[Region] = []
        inside: list[Region] = []
        now = self.begin_ns
        for begin, region in [*((each.begin_ns, each) for each in self.regions), (self.end_ns, None)]:
            while inside and (region is None or inside[-1].end_ns <= begin):
                now = _cut(found, inside, now, inside[-1].end_ns)
                inside.pop()
            now = _cut(found, inside, now, begin)
            if region is not None:
                inside.append(region)
        return found


def _cut(found: list[Region], inside: list[Region], begin: float, end: float) -> float:
    if end <= begin:
        return begin
    found.append(Region(inside[-1].name if inside else GAP, begin, end, inside[-1].depth if inside else 0))
    return end


class Trace(Struct, frozen=True):
    """All tracks of one call, on one time axis. `notes`: what is missing from it, or odd.

    `step_ns`: how close times of two multiprocessors are to each other at best. `cycles_per_ns` is 0 where the times
    never were cycles.
    """

    tracks: tuple[Track, ...] = ()
    notes: tuple[str, ...] = ()
    step_ns: float = 0.0
    cycles_per_ns: float = 0.0


def build(buffer: Buffer, names: Sequence[str], fallback_cycles_per_ns: float = 1.0) -> Trace:
    """The trace in a buffer; region number i is names[i]. The rate is used where the buffer gives none."""
    axis = clocks.align(buffer.tracks, fallback_cycles_per_ns)
    told: Counter[str] = Counter()
    tracks = tuple(_track(each, names, axis, told) for each in buffer.tracks)
    notes = [*buffer.notes, *_lost(buffer), *(f"{text}: {count} times" for text, count in told.items())]
    if buffer.tracks and not axis.measured:
        notes.append(f"too short to measure the clock: {fallback_cycles_per_ns:.3g} cycles per ns are assumed")
    return Trace(tracks, tuple(notes), axis.step_ns, axis.cycles_per_ns)


def _lost(buffer: Buffer) -> list[str]:
    """What did not fit."""
    notes = []
    if buffer.dropped_tracks:
        notes.append(f"{buffer.dropped_tracks} of {buffer.claimed} warps found no room: the first ones are shown")
    if dropped := sum(track.dropped for track in buffer.tracks):
        cut = sum(track.dropped > 0 for track in buffer.tracks)
        notes.append(f"{dropped} events of {cut} warps found no room: their tracks end early")
    if unended := sum(not track.is_ended for track in buffer.tracks):
        notes.append(f"{unended} warps never came to their end")
    return notes


def _track(recorded: Recorded, names: Sequence[str], axis: clocks.Axis, told: Counter[str]) -> Track:
    # A track that overflowed says nothing of the time after its last event.
    end = recorded.events[-1].clock if recorded.dropped and recorded.events else recorded.end
    regions = nested(recorded.events, end, names, told)
    return Track(
        *(recorded.sm, recorded.block, recorded.warp),
        *(axis.ns(recorded.sm, recorded.begin), axis.ns(recorded.sm, end)),
        tuple(
            Region(name, axis.ns(recorded.sm, begin), axis.ns(recorded.sm, until), depth)
            for name, begin, until, depth in regions
        ),
        recorded.launch,
    )


def nested(
    events: Iterable[Event], end: int, names: Sequence[str], told: Counter[str]
) -> list[tuple[str, int, int, int]]:
    """Regions as (name, begin, end, depth), in order of their beginnings; `told` counts what did not match."""
    found: list[tuple[str, int, int, int]] = []
    inside: list[int] = []  # of `found`: those that are open
    open_: Counter[str] = Counter()  # by name: a hostile track may nest as deeply as it is long
    for event in events:
        name = names[event.region] if event.region < len(names) else f"region {event.region}"
        if not event.is_end:
            inside.append(len(found))
            open_[name] += 1
            found.append((name, event.clock, end, len(inside) - 1))
        elif not open_[name]:
            told[f"{name} ends without having begun"] += 1
        else:
            while (at := inside.pop()) is not None:
                found[at] = (found[at][0], found[at][1], event.clock, found[at][3])
                open_[found[at][0]] -= 1
                if found[at][0] == name:
                    break
                told[f"{name} ends before {found[at][0]}, which began in it"] += 1
    for at in inside:
        told[f"{found[at][0]} is open where its track ends"] += 1
    return found
