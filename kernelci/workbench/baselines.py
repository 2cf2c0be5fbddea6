"""Baselines beside a kernel: what a user would otherwise call, timed by the same clock in processes of their own.

They are trusted code: their outputs are not judged, since an eager expression in bf16 may round more often than a
kernel may, but they must be finite. What fails is a note.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kernelci.errors import Stop
from kernelci.model import Metric, Row, Unit, number
from kernelci.reference import Case, Reference
from kernelci.workbench import expression, timing, unjudged
from kernelci.workbench.ahead import COMPILE_S
from kernelci.workbench.arena import Arena
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Time
from kernelci.workbench.contest import COPIED, at_once, started
from kernelci.workbench.protocol import Source
from kernelci.workbench.session import Session
from kernelci.workbench.spent import Spent


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
Keep = Callable[[bytes], str]
"""Takes what torch has compiled, and says so where that was not ready before."""
ONCE = "baselines, once for each reference"


def measured_once(
    kept: Kept,
    device: str,
    reference: Reference,
    cases: Sequence[Case],
    calibration: Calibration,
    opened: Opened,
    keep: Keep | None = None,
) -> tuple[Found, str]:
    """Each case's baselines by the case's id, measured where `kept` has none; and a note of the time that this took.

    `opened` gives the session of one of them by its name, in a process that no kernel shares, on an arena. `keep` is
    given what torch.compile has in its cache at the end.
    """
    missing = [case for case in cases if (device, reference.name, case.id) not in kept]
    began, spent, note = time.monotonic(), Spent(), ""
    if missing:
        found, left = measure(device, reference, missing, calibration, opened, spent)
        kept |= {(device, reference.name, name): each for name, each in found.items()}
        said = keep(left) if keep is not None and left else ""
        note = f"{ONCE}: {said}{spent.text(time.monotonic() - began)}"
    return {case.id: kept[device, reference.name, case.id] for case in cases}, note


def names(reference: Reference) -> tuple[str, ...]:
    """What a reference has for baselines."""
    library = (f"{expression.LIBRARY}{name}" for name in reference.library)
    return (expression.EAGER, expression.COMPILE, *library)


def measure(
    device: str, reference: Reference, cases: Sequence[Case], calibration: Calibration, opened: Opened, spent: Spent
) -> tuple[Found, bytes]:
    """Every baseline on every case, one process for each baseline, on slots like a kernel's; and what torch.compile
    has in its cache by then: nothing where that process ended."""
    try:
        with spent.during("setting_up"):
            arena, _ = timing.arena_for(device, reference, cases, calibration, returns=True)
    except Stop as stop:
        note = Baseline("all", note=stop.message)
        return {case.id: (note,) for case in cases}, b""
    with spent.during("starting"):
        started_ones = _started(arena, reference, opened)
    sessions = {name: one for name, one in started_ones.items() if isinstance(one, Session)}
    try:
        found = {case.id: _on(case, started_ones, sessions, arena, reference, calibration, spent) for case in cases}
        return found, _left(sessions.get(expression.COMPILE))
    finally:
        with spent.during("ending"):
            at_once(Session.close, list(sessions.values()))
            arena.close()


def _started(arena: Arena, reference: Reference, opened: Opened) -> "dict[str, Session | Stop]":
    """A session of every baseline, all started at the same time."""
    found: dict[str, Session | Stop] = {}
    for name in names(reference):
        try:
            found[name] = session = opened(arena, reference, name)
            session.limits.call_s = max(session.limits.call_s, COMPILE_S)
        except Stop as stop:
            found[name] = stop
    at_once(started, [one for one in found.values() if isinstance(one, Session)])
    return found


def _on(
    case: Case,
    all_of_them: "Mapping[str, Session | Stop]",
    sessions: Mapping[str, Session],
    arena: Arena,
    reference: Reference,
    calibration: Calibration,
    spent: Spent,
) -> tuple[Baseline, ...]:
    """All baselines on one case, in the order of their names; those that have no session with what is wrong."""
    found = unjudged.timed(sessions, reference, case, arena, calibration, spent)
    return tuple(_baseline(name, found.get(name, one)) for name, one in all_of_them.items())


def _baseline(name: str, found: "unjudged.TimedCall | Session | Stop") -> Baseline:
    if isinstance(found, unjudged.TimedCall):
        return Baseline(name, found.time, f"{COPIED}: {found.copied}" if found.copied else "")
    assert isinstance(found, Stop)
    return Baseline(name, note=" ".join(found.message.split())[:300])


def _left(session: Session | None) -> bytes:
    """What its compilers left."""
    with contextlib.suppress(Stop):
        return session.packed() if session is not None and session.life else b""
    return b""


def source_of(reference: Reference, name: str) -> Source:
    """A baseline's own file, and the reference file beside it."""
    own = "kernelci_baseline.py"
    text = expression.source(reference.path, name).encode()
    return Source("baseline", own, {own: text, reference.path.name: reference.path.read_bytes()})


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
