"""Baselines beside a kernel: what a user would otherwise call, timed by the same clock in processes of their own.

They are trusted code: their outputs are not judged, since an eager expression in bf16 may round more often than a
kernel may, but they must be finite. What fails is a note.
"""

import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch
from msgspec import Struct

from kernelci.errors import Verdict
from kernelci.model import Metric, Row, Unit, number
from kernelci.reference import Case, Reference
from kernelci.workbench import clock, expression, slots, timing
from kernelci.workbench.ahead import COMPILE_S
from kernelci.workbench.arena import Arena, dtype_of
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Time
from kernelci.workbench.contest import COPIED, Contestant, at_once, started
from kernelci.workbench.narrow import is_float
from kernelci.workbench.protocol import Source, Spots
from kernelci.workbench.session import Session

WINDOWS = 3


class Baseline(Struct, frozen=True):
    """One baseline of a case: its time, or what went wrong; `note` says what else is to be known of it."""

    name: str
    time: Time | None = None
    note: str = ""


Found = dict[str, tuple[Baseline, ...]]
"""By case."""
Opened = Callable[[Arena, Reference, str], Session]
Kept = dict[tuple[str, str, str], tuple[Baseline, ...]]
"""By device, reference and case: one run measures each once, for all kernels of the reference."""


def beside(
    kept: Kept, device: str, reference: Reference, cases: Sequence[Case], calibration: Calibration, opened: Opened
) -> tuple[Found, str]:
    """Each case's baselines by the case's id, measured where `kept` has none; and a note of the time that this took.

    `opened` gives the session of one of them by its name, in a process that no kernel shares, on an arena.
    """
    missing = [case for case in cases if (device, reference.name, case.id) not in kept]
    began, note = time.monotonic(), ""
    if missing:
        found = measure(device, reference, missing, calibration, opened)
        kept |= {(device, reference.name, name): each for name, each in found.items()}
        note = f"seconds of the baselines, once for each reference: {time.monotonic() - began:.1f}"
    return {case.id: kept[device, reference.name, case.id] for case in cases}, note


def names(reference: Reference) -> tuple[str, ...]:
    """What a reference has for baselines."""
    library = (f"{expression.LIBRARY}{name}" for name in reference.library)
    return (expression.EAGER, expression.COMPILE, *library)


def measure(
    device: str, reference: Reference, cases: Sequence[Case], calibration: Calibration, opened: Opened
) -> Found:
    """Every baseline on every case, one process for each baseline, on slots like a kernel's."""
    found: dict[str, list[Baseline]] = {case.id: [] for case in cases}
    try:
        arena, _ = timing.arena_for(device, reference, cases, calibration, returns=True)
    except Verdict as verdict:
        note = Baseline("all", note=verdict.message)
        return {case.id: (note,) for case in cases}
    try:
        for name, session in _started(arena, reference, opened).items():
            for case, one in zip(cases, _each(name, session, arena, reference, cases, calibration), strict=True):
                found[case.id].append(one)
    finally:
        arena.close()
    return {case: tuple(each) for case, each in found.items()}


def _started(arena: Arena, reference: Reference, opened: Opened) -> "dict[str, Session | Verdict]":
    """A session of every baseline, all started at the same time."""
    found: dict[str, Session | Verdict] = {}
    for name in names(reference):
        try:
            found[name] = opened(arena, reference, name)
        except Verdict as verdict:
            found[name] = verdict
    at_once(started, [one for one in found.values() if isinstance(one, Session)])
    return found


def _each(
    name: str,
    session: "Session | Verdict",
    arena: Arena,
    reference: Reference,
    cases: Sequence[Case],
    calibration: Calibration,
) -> Iterator[Baseline]:
    """One baseline on each case, by one process as long as it lives."""
    if isinstance(session, Verdict):
        yield from (_failed(name, session) for _ in cases)
        return
    session.limits.call_s = max(session.limits.call_s, COMPILE_S)
    try:
        for case in cases:
            yield _one(name, session, arena, reference, case, calibration)
    finally:
        session.close()


def _one(
    name: str, session: Session, arena: Arena, reference: Reference, case: Case, calibration: Calibration
) -> Baseline:
    one, layout = Contestant(name, session), slots.layout(reference, case, arena.serves)
    room = timing.most_calls(reference, case, layout, arena.size, calibration)
    try:
        scouted = _tried(one, arena, reference, case, min(room, timing.SCOUT_CALLS), timing.SCOUT_WINDOWS)
        ns = min(map(calibration.overhead.closest, scouted.windows))
        calls = timing.calls_for(ns, max(1, layout.read + layout.written), room, calibration)
        tried = _tried(one, arena, reference, case, calls, WINDOWS)
        found, copied = clock.time_of(tried.windows, calibration.overhead), tried.course.copied.get(one.side, "")
        session.forget()
    except Verdict as verdict:
        return _failed(name, verdict)
    return Baseline(name, found, f"{COPIED}: {copied}" if copied else "")


def _failed(name: str, verdict: Verdict) -> Baseline:
    return Baseline(name, note=" ".join(verdict.message.split())[:300])


def _tried(one: Contestant, arena: Arena, reference: Reference, case: Case, calls: int, count: int) -> timing.Tried:
    """So many windows of so many calls. Raises Verdict."""
    return timing.first_windows(one, Unjudged(reference, case, arena, calls, secrets.token_hex(8)), count)


def source_of(reference: Reference, name: str) -> Source:
    """A baseline's own file, and the reference file beside it."""
    own = "kernelci_baseline.py"
    text = expression.source(reference.path, name).encode()
    return Source("baseline", own, {own: text, reference.path.name: reference.path.read_bytes()})


class Unjudged(slots.Bank):
    """Slots whose outputs only have to be finite, in the first and the last of a window."""

    def check(self, count: int, spots: Mapping[str, Spots] | None = None) -> None:
        """Raises Verdict("not-finite"), or Verdict("refused") for a place that can't be."""
        self.require(spots or {}, count)
        for name, spec in self.layout.outputs.items():
            dtype = dtype_of(spec.dtype)
            if self.reference.nan_allowed or not spec.elements or not is_float(dtype) or dtype.itemsize == 1:
                continue
            if not all(bool(torch.isfinite(self.result(name, slot, spots or {})).all()) for slot in {0, count - 1}):
                raise Verdict("not-finite", f"output {name} is not finite")


def metrics(row: Row, found: Sequence[Baseline]) -> Iterator[Metric]:
    """Each baseline's time and the speed-up over it, for a row that has a time."""
    head = next((metric for metric in row.metrics if metric.tag == "time"), None)
    for one in found:
        if head is None or one.time is None:
            continue
        text = f"of one call of {_SAID.get(one.name, one.name)}, on cold inputs, device only"
        low, high = number(one.time.low), number(one.time.high)
        yield Metric(f"time_{one.name}", number(one.time.ns), Unit.NANOSECONDS, one.name, text, low, high)
        yield _speedup(one.name, one.time, head)


def _speedup(name: str, time: Time, head: Metric) -> Metric:
    values = [float(value) if value else math.nan for value in (head.value, head.low, head.high)]
    ratio, high, low = (each / own for each, own in zip((time.ns, time.high, time.low), values, strict=True))
    text = f"{_SAID.get(name, name)} over head"
    return Metric(f"speedup_{name}", number(ratio), Unit.RATIO, f"over {name}", text, number(low), number(high))


def notes(found: Iterable[Baseline]) -> Iterator[str]:
    """What a row says of baselines besides."""
    yield from (f"baseline {one.name}: {one.note}"[:1000] for one in found if one.note)


_SAID: Mapping[str, str] = {
    expression.EAGER: "the reference as torch runs it",
    expression.COMPILE: "the reference by torch.compile",
}
