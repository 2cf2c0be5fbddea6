"""A trial: one case and draw through the candidate, twice, in two places of the arena, with fresh poison each time.

It answers what needs no oracle: did the call return, in the right shape and dtype, without touching anything but its
outputs, did it write every element, and did it do the same twice. Several draws are tried together: all first calls in
one order, then all second calls in another, so that what a kernel keeps from one call shows in the next. The calls are
made in batches (kernelci.workbench.batch); where something goes wrong in one, they are made again one by one.
"""

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from msgspec import Struct

from kernelci.errors import Stop
from kernelci.reference import LAYOUTS, Case, TensorSpec
from kernelci.units import listed
from kernelci.workbench.batch import Called, Places, call, call_unguarded, follow_unguarded
from kernelci.workbench.drawn import NEAR, VARIED, Drawn, split
from kernelci.workbench.location import locate
from kernelci.workbench.oracle import Truth
from kernelci.workbench.poison import bits, repoisoned
from kernelci.workbench.protocol import Followed
from kernelci.workbench.session import Session
from kernelci.workbench.subject import Poison, Subject

# Bytes of slots in one batch at most. On the CPU all of the arena is compared after every batch, by one core.
BATCH_BYTES = {"cpu": 2**26, "cuda": 2**30}
SHOWN = 8


class Trial(Struct, frozen=True):
    """What the calls left: outputs on the referee's own memory, and those of the second where its bits differ."""

    outputs: dict[str, torch.Tensor]
    again: dict[str, torch.Tensor] | None = None

    @property
    def repeated(self) -> bool:
        """Whether two calls on the same inputs gave the same bits."""
        return self.again is None


Found = dict[str, Trial | Stop]


def run(session: Session, case: Case, inputs: Mapping[str, Any], outputs: Mapping[str, TensorSpec]) -> Trial:
    """Call twice and check. Raises Stop with the reason and place of what went wrong."""
    return run_drawn(session, Drawn(case, dict(inputs), dict(outputs), Truth({}, {})))


def run_drawn(session: Session, drawn: Drawn, config: int | None = None) -> Trial:
    """Call twice and check, autotuners pinned to a configuration if one is given. Raises Stop."""
    found = _Round(session, {VARIED: Subject(drawn, config)}).found([VARIED], [VARIED])[VARIED]
    if isinstance(found, Stop):
        raise found
    return found


def run_all(session: Session, drawn: Mapping[str, Drawn], seed: str) -> Found:
    """Try all draws together, calls interleaved in an order that the seed gives.

    Where a batch has a fault, a fresh candidate makes the calls again one by one, up to the first fault. What goes
    wrong only in the batch is told so: a kernel must not take anything from one call to the next.
    """
    if not drawn:
        return {}
    order = random.Random("/".join((seed, *sorted(drawn))))
    subjects = {name: Subject(one) for name, one in drawn.items()}
    firsts, seconds = (order.sample(sorted(subjects), len(subjects)) for _ in range(2))
    seconds = _close(seconds)
    together = _Round(session, subjects, BATCH_BYTES[session.arena.device.partition(":")[0]])
    found = together.found(firsts, seconds)
    if not together.fault or together.places.count == 1:
        return found
    session.renew()
    began, fault = time.monotonic(), found[together.fault]
    alone = _Round(session, subjects)
    found = alone.found(firsts, seconds)
    took_s = time.monotonic() - began
    if not alone.fault and isinstance(fault, Stop) and not _excused(session, fault, together.places.count, took_s):
        found[together.fault] = _only_together(fault, together.fault, firsts)
    return found


def _close(names: list[str]) -> list[str]:
    """Draws that differ in an element or two directly behind the one that they are made of: there an answer that is
    kept by a fingerprint shows, and by chance they would rarely meet where a reference has one case."""
    near = [name for name in names if split(name)[1] in NEAR and split(name)[0] in names]
    found: list[str] = []
    for name in names:
        if name not in near:
            found += [name, *(one for one in near if split(one)[0] == name)]
    return found


def _excused(session: Session, fault: Stop, calls: int, took_s: float) -> bool:
    """Whether what is right one by one may fail together: calls that need much memory, or more than half their time."""
    return fault.reason == "out-of-memory" or (fault.reason == "hang" and 2 * took_s > session.patience_s(calls))


def _only_together(fault: Stop, name: str, names: list[str]) -> Stop:
    shown = listed([other for other in names if other != name], SHOWN)
    text = f"only when it is called together with {shown}, and not one by one: {fault.message}"
    return Stop(fault.reason, text, file=fault.file, line=fault.line, log=fault.log)


class _Round:
    """All first calls, then all second calls, in batches of so many bytes (0: one by one), up to one with a fault."""

    def __init__(self, session: Session, subjects: Mapping[str, Subject], at_once: int = 0) -> None:
        self._session = session
        self._subjects = subjects
        self.fault = ""
        """The name of the draw whose fault ended it."""
        stride = max(subject.size for subject in subjects.values())
        count = max(1, min(len(subjects), at_once // stride))
        needed = count * stride
        if needed > session.arena.size and session.arena.device != "cpu":
            needed = max(needed, at_once)  # at once: each larger arena needs a fresh candidate
        session.reserve(needed)
        self.places = Places(session.arena.device, count, stride)

    def found(self, firsts: list[str], seconds: list[str]) -> Found:
        """What became of the draws that were tried."""
        begun: dict[str, Called] = {}
        found: Found = {}
        device = self._session.arena.device
        for names in self._batches(firsts):
            called = self._called({name: self._subjects[name].poison(device) for name in names})
            begun |= {name: one for name, one in called.items() if isinstance(one, Called)}
            found |= {name: one for name, one in called.items() if isinstance(one, Stop)}
            if self.fault:
                return found
        for names in self._batches([name for name in seconds if name in begun]):
            old = {name: begun.pop(name) for name in names}
            called = self._called({name: _stale(one.poison) for name, one in old.items()})
            found |= _trials(old, called)
            self._notice(found)
            if self.fault:
                return found
        return found

    def _batches(self, names: list[str]) -> Iterator[list[str]]:
        for begin in range(0, len(names), self.places.count):
            yield names[begin : begin + self.places.count]

    def _called(self, poison: dict[str, Poison]) -> dict[str, Called | Stop]:
        """A batch of calls in this order. The fault of no one call is the last one's."""
        found: dict[str, Called | Stop] = {}
        try:
            found = call(self._session, self.places, {name: self._subjects[name] for name in poison}, poison)
        except Stop as stop:
            found[list(poison)[-1]] = stop
        self._notice(found)
        return found

    def _notice(self, found: Mapping[str, object]) -> None:
        for name, one in found.items():
            if isinstance(one, Stop) and not (one.reason == "raised" and self._subjects[name].placed_otherwise):
                self.fault = self.fault or name


def _stale(poison: Poison) -> Poison:
    return {name: repoisoned(value) for name, value in poison.items()}


def _trials(firsts: Mapping[str, Called], agains: Mapping[str, Called | Stop]) -> Found:
    """The trials of pairs of calls, by one answer from the device: was all written, and are the bits the same?"""
    pairs = {name: (firsts[name], again) for name, again in agains.items() if isinstance(again, Called)}
    found: Found = {name: again for name, again in agains.items() if isinstance(again, Stop)}
    if not pairs:
        return found
    flags = torch.stack(
        [flag for first, again in pairs.values() for flag in (_kept(first, again), _alike(first, again))]
    )
    answers = iter(flags.tolist())
    for name, (first, again) in pairs.items():
        kept, alike = next(answers), next(answers)
        unwritten = _unwritten(first, again) if kept else None
        found[name] = unwritten or Trial(first.values, None if alike else again.values)
    return found


def _kept(first: Called, again: Called) -> torch.Tensor:
    """Whether any element held its poison after both calls."""
    return _any([(first.kept[name] & again.kept[name]).any() for name in first.kept], again)


def _alike(first: Called, again: Called) -> torch.Tensor:
    return ~_any([(bits(one) != bits(again.values[name])).any() for name, one in first.values.items()], again)


def _any(flags: list[torch.Tensor], again: Called) -> torch.Tensor:
    device = next(iter(again.values.values())).device
    return torch.stack(flags).any() if flags else torch.zeros((), dtype=torch.bool, device=device)


def _unwritten(first: Called, again: Called) -> Stop | None:
    for name, kept in first.kept.items():
        place = locate(kept & again.kept[name])
        if place is not None:
            return Stop("unwritten", f"output {name}: {place.text().replace('are bad', 'were never written')}")
    return None


def is_refusal(draw: str, found: Trial | Stop) -> bool:
    """Whether a kernel said clearly that it does not take the layout that a draw gives its input."""
    return isinstance(found, Stop) and found.reason == "raised" and split(draw)[1] in LAYOUTS


def repeats(session: Session, drawn: Drawn, count: int) -> list[dict[str, torch.Tensor]]:
    """The distinct outputs of `count` calls on the same inputs, by a hash of their bits on the device."""
    subject = Subject(drawn)
    session.reserve(subject.size)
    places = Places(session.arena.device, 1, subject.size)
    found: dict[tuple[int, ...], dict[str, torch.Tensor]] = {}
    for _ in range(count):
        called = call(session, places, {"": subject}, {"": subject.poison(session.arena.device)})[""]
        if isinstance(called, Stop):
            raise called
        key = tuple(torch.stack([digest(value) for value in called.values.values()]).tolist())
        found.setdefault(key, called.values)
    return list(found.values())


def plainly(session: Session, drawn: Drawn) -> dict[str, torch.Tensor]:
    """The outputs of one call on zeroed outputs, whose surroundings nobody looks at. Raises Stop."""
    subject = Subject(drawn)
    return call_unguarded(session, subject, subject.zeros(session.arena.device))


def follow(session: Session, drawn: Drawn, calls: int) -> Followed:
    """What host and GPU did in so many calls, after one that compiles and tunes: a claim. Raises Stop."""
    subject = Subject(drawn)
    return follow_unguarded(session, subject, subject.zeros(session.arena.device), calls)


def digest(values: torch.Tensor) -> torch.Tensor:
    """A 64-bit hash of a tensor's bits, computed where the tensor lies: equal bits give equal hashes."""
    flat = bits(values).reshape(-1).to(torch.int64)
    place = torch.arange(flat.numel(), device=flat.device, dtype=torch.int64)
    mixed = (flat + place * 0x5851F42D4C957F2D) * 0x14057B7EF767814F
    return ((mixed ^ (mixed >> 29)) * 0x2545F4914F6CDD1D).sum()
