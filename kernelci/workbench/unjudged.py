"""Windows of what is trusted: timed by the kernel's clock on slots like a kernel's, and judged by nobody."""

import secrets
from collections.abc import Mapping

import torch
from msgspec import Struct

from kernelci.errors import Stop
from kernelci.reference import Case, Reference
from kernelci.workbench import clock, slots, timing
from kernelci.workbench.arena import Arena, dtype_of
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Time, Window
from kernelci.workbench.contest import Contestant, Course
from kernelci.workbench.narrow import is_float
from kernelci.workbench.protocol import Spots
from kernelci.workbench.series import usual_mode
from kernelci.workbench.session import Session
from kernelci.workbench.spent import Spent

WINDOWS = 3


class TimedCall(Struct, frozen=True):
    """The time of one call, and why its result is copied while the clock runs, if it is."""

    time: Time
    copied: str = ""


class Unjudged(slots.Bank):
    """Slots whose outputs only have to be finite, in the first and the last of a window.

    Their values are drawn once, since what is trusted remembers none, and laid into the slots before every window, so
    that it begins as a kernel's does, and calls may overwrite them.
    """

    _drawn = 0

    def deal(self, count: int | None = None, spots: Mapping[str, Spots] | None = None) -> None:
        """The inputs of the first `count` slots, drawn where these have none yet."""
        wanted = self.count if count is None else count
        if self._drawn < wanted:
            super().deal(wanted, spots)
            self._drawn = wanted
        else:
            self._lay(wanted, outputs=False)

    def check(self, count: int, spots: Mapping[str, Spots] | None = None) -> None:
        """Raises Stop("not-finite"), or Stop("refused") for a place that can't be."""
        self.require(spots or {}, count)
        for name, spec in self.layout.outputs.items():
            dtype = dtype_of(spec.dtype)
            if self.reference.nan_allowed or not spec.elements or not is_float(dtype) or dtype.itemsize == 1:
                continue
            if not all(bool(torch.isfinite(self.result(name, slot, spots or {})).all()) for slot in {0, count - 1}):
                raise Stop("not-finite", f"output {name} is not finite")


def timed(
    those: Mapping[str, Session],
    reference: Reference,
    case: Case,
    arena: Arena,
    calibration: Calibration,
    spent: Spent,
) -> "dict[str, TimedCall | Stop]":
    """One case by each of them, by name: a scout each, then full windows, all on the same slots."""
    layout = slots.layout(reference, case, arena.serves)
    room = timing.most_calls(reference, case, layout, arena.size, calibration)
    touched = max(1, layout.read + layout.written)
    few = min(room, timing.SCOUT_CALLS)
    bank = _bank(reference, case, arena, few)
    scouted = {name: _windows(name, one, bank, few, timing.SCOUT_WINDOWS, spent) for name, one in those.items()}
    calls = {
        name: timing.calls_for(min(map(calibration.overhead.closest, found.windows)), touched, room, calibration)
        for name, found in scouted.items()
        if not isinstance(found, Stop)
    }
    bank = _bank(reference, case, arena, max(calls.values(), default=1))
    full = {name: _windows(name, those[name], bank, count, WINDOWS, spent) for name, count in calls.items()}
    return {name: _time(full.get(name, found), calibration) for name, found in scouted.items()}


class _Ran(Struct, frozen=True):
    windows: list[Window]
    copied: str


def _bank(reference: Reference, case: Case, arena: Arena, count: int) -> Unjudged:
    return Unjudged(reference, case, arena, count, secrets.token_hex(8))


def _windows(name: str, session: Session, bank: Unjudged, calls: int, count: int, spent: Spent) -> "_Ran | Stop":
    """So many windows of so many calls; the process keeps nothing of them."""
    one, course = Contestant(name, session), Course(bank, {"full": calls}, usual_mode(bank.device))
    try:
        with spent.during("drawing"):
            bank.deal()
        with spent.during("readying"):
            one.prepare(0, course, "full", None)
        windows = [one.go(0, course, "full", spent) for _ in range(count)]
        session.forget()
    except Stop as stop:
        return stop
    return _Ran(windows, course.copied.get(name, ""))


def _time(found: "_Ran | Stop", calibration: Calibration) -> "TimedCall | Stop":
    if isinstance(found, Stop):
        return found
    try:
        return TimedCall(clock.time_of(found.windows, calibration.overhead), found.copied)
    except Stop as stop:
        return stop
