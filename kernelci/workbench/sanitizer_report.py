"""Reads what compute-sanitizer writes. The text is the kernel's as much as the tool's: bounded, and only text.

A record is a head line and details, each behind a row of `=`:

    ========= Invalid __global__ read of size 4 bytes
    =========     at softmax_row(const float *, float *)+0x90 in /a/b/softmax.cu:31
    =========     by thread (3,0,0) in block (2,0,0)
    =========     Access at 0x7f0000000204 is out of bounds
    =========     and is 1 bytes after the nearest allocation at 0x7f0000000000 of size 516 bytes
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from msgspec import Struct

TEXT_CHARS = 4 * 2**20
LINE_CHARS = 2000
RECORD_LINES = 60
BANNER = "COMPUTE-SANITIZER"
FOUND = 200  # distinct findings; what lies beyond is only counted

_LINE = re.compile(r"={8,10}(?: (.*))?\Z")
# A detail is indented; these words begin one where a copy of the text lost its spaces.
_DETAIL = re.compile(
    r"\s|at |by thread|and |Address |Access (?:at|to) |Device Frame|Host Frame|Saved |in /|"
    r"(?:Read|Write|Atomic) Thread|Current Value"
)
_SEVERITY = re.compile(r"(error|warning|info)\s*:\s*", re.IGNORECASE)
_RACE = re.compile(r"Race reported between (\w+) access at (.+)\Z")
_RACE_OTHER = re.compile(r"and (\w+) access at (.+?)(?: \[([\d,]+) hazards?\])?\Z")
_HAZARD = re.compile(r"(?:\(.*\) )?(Potential \w+ hazard) detected at (\S+) (\S+) in block (\(.*?\))")
_HAZARD_SIDE = re.compile(r"(\w+) Thread (\(.*?\)) at (.+)\Z")
_THREAD = re.compile(r"by threads? (\(.*?\))(?:.*? in block (\(.*?\)))?")
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: ([\d,]{1,15}) (?:errors?|hazards?)")
_RACES = re.compile(r"\(([\d,]{1,15}) errors?, ([\d,]{1,15}) warnings?\)")
# Three ways in which versions of the tool name a place.
_PLACES = (
    re.compile(r"(?P<symbol>.*?)(?:\+|:)0x[0-9a-fA-F]+(?: in (?P<file>.+):(?P<line>\d{1,9}))?\Z"),
    re.compile(r"0x[0-9a-fA-F]+ in (?P<file>[^():]+):(?P<line>\d{1,9}):(?P<symbol>.+)\Z"),
    re.compile(r"0x[0-9a-fA-F]+(?: in (?P<symbol>.+))?\Z"),
)


class Place(Struct, frozen=True):
    """An instruction: the function it is in, and the line of the source where that is known."""

    symbol: str = ""
    file: str = ""
    line: int = 0

    def text(self) -> str:
        """Readable, with the file's name only."""
        where = f"{PurePosixPath(self.file).name}:{self.line}" if self.file else ""
        return " in ".join(filter(None, [where, self.symbol])) or "an unknown place"


class Found(Struct, frozen=True):
    """One finding: all reports of a kind at one place. Thread, block and details are those of the first."""

    kind: str
    place: Place
    thread: str = ""
    block: str = ""
    details: tuple[str, ...] = ()
    count: int = 1
    warning: bool = False

    def text(self) -> str:
        """One line for a person."""
        by = f", thread {self.thread}" if self.thread else ""
        by += f" of block {self.block}" if self.block else ""
        more = f" ({self.count} reports)" if self.count > 1 else ""
        return "; ".join([f"{self.kind} at {self.place.text()}{by}{more}", *self.details])


class ToolReport(Struct, frozen=True):
    """All that a run found. `other` are the heads of records that no kernel's instruction belongs to."""

    found: tuple[Found, ...] = ()
    other: tuple[str, ...] = ()
    total: int | None = None
    """Errors by the tool's own count; None if it came to no conclusion."""

    @property
    def errors(self) -> tuple[Found, ...]:
        """Findings that are more than warnings."""
        return tuple(one for one in self.found if not one.warning)


def parse(text: str) -> ToolReport:
    """Every record of the text, whatever is in it."""
    merged: dict[tuple[str, str, int], Found] = {}
    other: dict[str, None] = {}
    total: int | None = None
    for head, details in _records(text[:TEXT_CHARS]):
        summary = _SUMMARY.search(head)
        if summary:
            total = (total or 0) + _total(head, summary)
            continue
        found = _finding(head, details)
        if found is None:
            if len(other) < FOUND and head != BANNER:
                other.setdefault(head[:300])
            continue
        key = (found.kind, found.place.file or found.place.symbol, found.place.line)
        if key in merged:
            merged[key] = _more(merged[key], found)
        elif len(merged) < FOUND:
            merged[key] = found
    return ToolReport(tuple(merged.values()), tuple(other), total)


def _total(head: str, summary: re.Match[str]) -> int:
    races = _RACES.search(head)
    return _number(races[1] if races else summary[1])


def _number(text: str) -> int:
    return int(text.replace(",", "") or 0)


def _more(known: Found, found: Found) -> Found:
    return Found(
        known.kind,
        known.place,
        known.thread,
        known.block,
        known.details,
        known.count + found.count,
        known.warning and found.warning,
    )


def _records(text: str) -> Iterator[tuple[str, list[str]]]:
    """Heads with their details; lines of others in between are left out."""
    head = ""
    details: list[str] = []
    for raw in text.splitlines():
        match = _LINE.match(raw[:LINE_CHARS])
        if match is None:
            continue
        body = match[1] or ""
        if body.strip() and _DETAIL.match(body):
            if head and len(details) < RECORD_LINES:
                details.append(body.strip())
            continue
        if head:
            yield head, details
        head, details = body.strip(), []
    if head:
        yield head, details


def _finding(head: str, details: list[str]) -> Found | None:
    """What a record says of a kernel's instruction, or None if it says nothing of one."""
    severity = _SEVERITY.match(head)
    said = head[severity.end() :] if severity else head
    mild = severity is not None and severity[1].lower() != "error"
    race, hazard = _RACE.match(said), _HAZARD.match(said)
    if race:
        return _race(race, details, mild)
    if hazard:
        return _hazard(hazard, details, mild)
    places = [line[3:] for line in details if line.startswith("at ")]
    if not places:
        return None
    place = _place(places[0])
    frames = [_place(line.partition(":")[2]) for line in details if line.startswith("Device Frame")]
    if not place.file:
        place = next((frame for frame in frames if frame.file), place)
    thread = next(filter(None, map(_THREAD.match, details)), None)
    facts = tuple(line for line in details if line.startswith(("Address", "Access", "and ")))
    return Found(
        said[:300].rstrip(". "), place, thread[1] if thread else "", (thread[2] or "") if thread else "", facts, 1, mild
    )


def _race(race: re.Match[str], details: list[str], mild: bool) -> Found:
    others = list(filter(None, map(_RACE_OTHER.match, details)))
    hazards = sum(_number(other[3]) for other in others if other[3])
    facts = tuple(f"and {other[1]} access at {_place(other[2]).text()}" for other in others[:8])
    return Found(f"{race[1]} access in a race", _place(race[2]), details=facts, count=max(hazards, 1), warning=mild)


def _hazard(hazard: re.Match[str], details: list[str], mild: bool) -> Found:
    sides = list(filter(None, map(_HAZARD_SIDE.match, details)))
    facts = tuple(f"{side[1]} by thread {side[2]} at {_place(side[3]).text()}" for side in sides[:2])
    place = _place(sides[0][3]) if sides else Place()
    return Found(hazard[1], place, sides[0][2] if sides else "", hazard[4], facts, 1, mild)


def _place(text: str) -> Place:
    text = text.strip().removesuffix("(void)")
    for pattern in _PLACES:
        match = pattern.match(text)
        if match:
            parts = match.groupdict()
            return Place(
                (parts["symbol"] or "").strip()[:300], (parts.get("file") or "")[:300], int(parts.get("line") or 0)
            )
    return Place(text[:300])
