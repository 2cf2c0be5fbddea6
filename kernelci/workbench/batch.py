"""A batch: calls that are made together, each on a slot of its own, side by side in the arena.

On a GPU the referee and a candidate take turns, and each change costs up to milliseconds where many processes share
it. So many slots are filled at once, called in one message, and checked by one question to the device; only where its
answer is bad is asked which call did what.
"""

import random
from collections.abc import Mapping, Sequence

import torch
from msgspec import Struct

from kernelci.errors import Stop
from kernelci.workbench.arena import Arena, Plan
from kernelci.workbench.poison import bits, nan_words
from kernelci.workbench.protocol import Done, Followed
from kernelci.workbench.session import Session
from kernelci.workbench.subject import MOVE_BYTES, MOVES, Poison, Subject


class Called(Struct, frozen=True):
    """The outputs after a call, and where they still held the poison."""

    values: dict[str, torch.Tensor]
    kept: dict[str, torch.Tensor]
    poison: Poison


class Places:
    """Where slots lie: side by side, so many at once, each with room to move. The arena must be reserved for them."""

    def __init__(self, device: str, count: int, stride: int) -> None:
        self.count = count
        self._shifts = [0] * count
        self._stride = stride
        self._last: dict[str, int] = {}
        size = stride + 2 * MOVES * MOVE_BYTES
        self._words = nan_words(size, device).view(torch.uint8)

    def deal(self, names: Sequence[str]) -> dict[str, int]:
        """Where each slot begins. Half the places stay where they were, and each has another call's values than last
        time wherever that can be: a kernel that knows inputs by their address meets others there."""
        staying = random.sample(range(self.count), (self.count + random.getrandbits(1)) // 2)
        self._shifts = [
            shift if place in staying else random.randrange(MOVES) * MOVE_BYTES
            for place, shift in enumerate(self._shifts)
        ]
        places = self._elsewhere(names)
        self._last |= places
        return {name: place * self._stride + self._shifts[place] for name, place in places.items()}

    def _elsewhere(self, names: Sequence[str]) -> dict[str, int]:
        """A place by lot for each; who got that of last time changes with another for whom it is none."""
        places = random.sample(range(self.count), self.count)  # of the names, then those that are left
        last = [self._last.get(name) for name in names] + [None] * (self.count - len(names))
        for at in (at for at in range(len(names)) if places[at] == last[at]):
            others = [other for other in range(self.count) if other != at and last[other] != places[at]]
            if others:
                other = random.choice(others)
                places[at], places[other] = places[other], places[at]
        return dict(zip(names, places, strict=False))

    def words(self, size: int) -> torch.Tensor:
        """So many bytes that read as NaN everywhere."""
        begin = random.randrange(MOVES * MOVE_BYTES // 2) * 2
        return self._words[begin : begin + size]


def call(
    session: Session, places: Places, subjects: Mapping[str, Subject], poison: Mapping[str, Poison]
) -> dict[str, Called | Stop]:
    """Fill slots, call on each in the order of `subjects`, check what lies around the outputs. A Stop stands for
    what a call did wrong; calls after a fault that ended them are missing. Raises Stop for a fault of no one call.
    """
    arena = session.arena
    plans = {name: subjects[name].plan(base) for name, base in places.deal(tuple(subjects)).items()}
    for name, plan in plans.items():
        _lay(arena, subjects[name], plan, poison[name], places.words(plan.bytes))
    _settle(arena.device)
    try:
        answers = session.call_all([subjects[name].message(plan) for name, plan in plans.items()])
    except Stop:
        arena.forget()  # whatever it wrote before its end is not the next call's doing
        raise
    found: dict[str, Called | Stop] = {
        name: _answered(session, subjects[name], answer, plans[name], poison[name])
        for name, answer in zip(plans, answers, strict=False)
    }
    return found | _checked(arena, subjects, plans)


def call_unguarded(session: Session, subject: Subject, poison: Poison) -> dict[str, torch.Tensor]:
    """One call, and the outputs that it left, whatever else it did. Raises Stop where it did not come back."""
    session.reserve(subject.size)
    arena, plan = session.arena, subject.plan(0)
    _lay(arena, subject, plan, poison, nan_words(plan.bytes, arena.device).view(torch.uint8))
    _settle(arena.device)
    try:
        subject.check_returned(session.call(subject.message(plan)), session.parameters)
    finally:
        arena.forget()
    return subject.values(arena, plan)


def follow_unguarded(session: Session, subject: Subject, poison: Poison, calls: int) -> Followed:
    """What host and GPU did in so many calls on one slot: a claim. Raises Stop where they did not come back."""
    session.reserve(subject.size)
    arena, plan = session.arena, subject.plan(0)
    _lay(arena, subject, plan, poison, nan_words(plan.bytes, arena.device).view(torch.uint8))
    _settle(arena.device)
    try:
        return session.follow(subject.message(plan), calls)
    finally:
        arena.forget()


def _lay(arena: Arena, subject: Subject, plan: Plan, poison: Poison, words: torch.Tensor) -> None:
    """Fill a slot: words everywhere but where inputs and poison are."""
    slot = arena.expected(plan.base, plan.end)
    slot.copy_(words)
    subject.fill(slot, plan, poison)
    arena.lay(plan.base, plan.end)


def _answered(session: Session, subject: Subject, answer: Done | Stop, plan: Plan, poison: Poison) -> Called | Stop:
    if isinstance(answer, Stop):
        return answer
    try:
        subject.check_returned(answer, session.parameters)
    except Stop as stop:
        return stop
    values = subject.values(session.arena, plan)
    return Called(values, {name: bits(values[name]) == bits(value) for name, value in poison.items()}, poison)


def _checked(arena: Arena, subjects: Mapping[str, Subject], plans: Mapping[str, Plan]) -> dict[str, Called | Stop]:
    """All bytes of the arena but those of the outputs are as they were: one answer from the device. Else who did it."""
    for name, plan in plans.items():
        subjects[name].accept(arena, plan)
    if not bool(arena.touched()):
        return {}
    found: dict[str, Called | Stop] = {}
    for name, plan in plans.items():
        try:
            subjects[name].check_surroundings(arena, plan)
        except Stop as stop:
            found[name] = stop
    arena.forget()
    if not found:
        raise Stop("out-of-bounds", "bytes far from every tensor were overwritten")
    return found


def _settle(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
