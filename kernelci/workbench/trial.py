"""A trial: one case and draw through the candidate, twice, in two places of the arena, with fresh poison each time.

It answers what needs no oracle: did the call return, in the right shape and dtype, without touching anything but its
outputs, did it write every element, and did it do the same twice. Several draws are tried together: all first calls in
one order, then all second calls in another, so that what a kernel keeps from one call shows in the next.
"""

import random
from collections.abc import Mapping
from typing import Any

import torch
from msgspec import Struct

from kernelci.errors import Verdict
from kernelci.reference import LAYOUTS, Case, TensorSpec
from kernelci.workbench.arena import Plan
from kernelci.workbench.drawn import Drawn, split
from kernelci.workbench.location import locate
from kernelci.workbench.narrow import is_float
from kernelci.workbench.oracle import Truth
from kernelci.workbench.protocol import Call, Done, TensorPlace, Value
from kernelci.workbench.session import Session

# 16-bit words that are NaN in fp16, bf16, fp32 and fp64 alike, whichever part of a number they fall on.
_NAN_WORDS = torch.tensor(
    [sign | word for sign in (0x0000, -0x8000) for word in range(0x7FF1, 0x8000)], dtype=torch.int16
)
_PATTERN_WORDS = 2**20  # longer stretches repeat this many random words
# Half the calls find their slot where it was, the others in one of so many other places.
MOVES = 64
MOVE_BYTES = 256


class Trial(Struct, frozen=True):
    """What the calls left: outputs on the referee's own memory, and those of the second where its bits differ."""

    outputs: dict[str, torch.Tensor]
    again: dict[str, torch.Tensor] | None = None

    @property
    def repeated(self) -> bool:
        """Whether two calls on the same inputs gave the same bits."""
        return self.again is None


def run(session: Session, case: Case, inputs: Mapping[str, Any], outputs: Mapping[str, TensorSpec]) -> Trial:
    """Call twice and check. Raises Verdict with the reason and place of what went wrong."""
    return run_drawn(session, Drawn(case, dict(inputs), dict(outputs), Truth({}, {})))


def run_drawn(session: Session, drawn: Drawn, config: int | None = None) -> Trial:
    """Call twice and check, autotuners pinned to a configuration if one is given. Raises Verdict."""
    slot = _Slot(session, drawn, config)
    return slot.second(slot.first())


def run_all(session: Session, drawn: Mapping[str, Drawn], seed: str) -> dict[str, Trial | Verdict]:
    """Try all draws together, calls interleaved in an order that the seed gives, up to the first fault."""
    order = random.Random(seed)
    slots = {name: _Slot(session, one) for name, one in drawn.items()}
    session.reserve(max((slot.size for slot in slots.values()), default=0))
    begun: dict[str, _Called] = {}
    found: dict[str, Trial | Verdict] = {}
    steps = [(name, True) for name in order.sample(sorted(slots), len(slots))]
    steps += [(name, False) for name in order.sample(sorted(slots), len(slots))]
    for name, is_first in steps:
        try:
            if is_first:
                begun[name] = slots[name].first()
            elif name in begun:
                found[name] = slots.pop(name).second(begun.pop(name))
        except Verdict as verdict:
            found[name] = verdict
            if not is_refusal(name, verdict):
                break
    return found


def is_refusal(draw: str, found: Trial | Verdict) -> bool:
    """Whether a kernel said clearly that it does not take the layout that a draw gives its input."""
    return isinstance(found, Verdict) and found.reason == "raised" and split(draw)[1] in LAYOUTS


def repeats(session: Session, drawn: Drawn, count: int) -> list[dict[str, torch.Tensor]]:
    """The distinct outputs of `count` calls on the same inputs, by a hash of their bits on the device."""
    slot = _Slot(session, drawn)
    found: dict[tuple[int, ...], dict[str, torch.Tensor]] = {}
    for _ in range(count):
        values = slot.call(slot.poison()).values
        key = tuple(torch.stack([digest(value) for value in values.values()]).tolist())
        found.setdefault(key, values)
    return list(found.values())


def digest(values: torch.Tensor) -> torch.Tensor:
    """A 64-bit hash of a tensor's bits, computed where the tensor lies: equal bits give equal hashes."""
    flat = bits(values).reshape(-1).to(torch.int64)
    place = torch.arange(flat.numel(), device=flat.device, dtype=torch.int64)
    mixed = (flat + place * 0x5851F42D4C957F2D) * 0x14057B7EF767814F
    return ((mixed ^ (mixed >> 29)) * 0x2545F4914F6CDD1D).sum()


class _Called(Struct, frozen=True):
    """The outputs after a call, and where they still held the poison."""

    values: dict[str, torch.Tensor]
    kept: dict[str, torch.Tensor]
    poison: dict[str, torch.Tensor]


class _Slot:
    """A slot of the arena for one case: fills it, calls, and checks what must not have changed."""

    def __init__(self, session: Session, drawn: Drawn, config: int | None = None) -> None:
        self._session = session
        self._config = config
        self._drawn = drawn
        self._inputs = {name: value for name, value in drawn.inputs.items() if isinstance(value, torch.Tensor)}
        self._outputs = drawn.outputs
        self._specs = {name: _spec(value) for name, value in self._inputs.items()} | drawn.outputs
        self._device = session.arena.device
        self._image: torch.Tensor | None = None
        # Reserved whole from the start: an arena that grows needs a fresh candidate, which remembers nothing.
        self.size = Plan(self._specs, MOVES * MOVE_BYTES, drawn.layouts).end

    def first(self) -> _Called:
        """The first call, on outputs that hold NaN of many patterns."""
        return self.call(self.poison())

    def second(self, first: _Called) -> Trial:
        """The second call, on plausible stale values; the trial. Raises Verdict("unwritten")."""
        again = self.call({name: repoisoned(value) for name, value in first.poison.items()})
        _check_written(first, again)
        same = torch.stack([(bits(first.values[name]) == bits(again.values[name])).all() for name in self._outputs])
        return Trial(first.values, None if bool(same.all()) else again.values)

    def poison(self) -> dict[str, torch.Tensor]:
        """New poison for every output that has memory of its own."""
        return {name: poisoned(spec, self._device) for name, spec in self._outputs.items() if not spec.alias}

    def call(self, poison: dict[str, torch.Tensor]) -> _Called:
        """Fill a slot somewhere in the arena; call; check what lies around the outputs. Raises Verdict."""
        plan = Plan(self._specs, random.choice((0, random.randrange(MOVES))) * MOVE_BYTES, self._drawn.layouts)
        self._session.reserve(self.size)
        arena = self._session.arena
        arena.raw(plan.base, plan.end).copy_(self._filled(plan))
        for name, value in poison.items():
            _put(arena.view(plan.places[name]), value)
        arena.remember(plan.base, plan.end)
        self._settle()
        done = self._session.call(_message(self._drawn, plan, self._config))
        _check_returned(done, self._session.parameters, self._outputs)
        self._check_untouched(plan)
        values = {name: _copied(arena.view(plan.places[name])) for name in self._outputs}
        kept = {name: bits(values[name]) == bits(value) for name, value in poison.items()}
        return _Called(values, kept, poison)

    def _filled(self, plan: Plan) -> torch.Tensor:
        """The bytes of the slot: inputs, and random words that read as NaN everywhere else."""
        if self._image is None or self._image.numel() != plan.bytes:
            self._image = nan_words(plan.bytes, self._device).view(torch.uint8)
            for name, value in self._inputs.items():
                _put(_within(self._image, plan, plan.places[name]), value)
        return self._image

    def _settle(self) -> None:
        if self._device != "cpu":
            torch.cuda.synchronize()

    def _check_untouched(self, plan: Plan) -> None:
        """All bytes of the arena but those of the outputs are as they were: one answer from the device."""
        arena = self._session.arena
        touched = [arena.touched(*span) for span in _spans(plan, self._changeable(), arena.size)]
        changed = bool(torch.stack(touched).any())
        arena.remember(plan.base, plan.end)
        if changed:
            self._check_guards(plan)
            self._check_inputs(plan)
            arena.forget()
            raise Verdict("out-of-bounds", "bytes far from every tensor were overwritten")

    def _changeable(self) -> set[str]:
        """Names of what a kernel may write to."""
        return {*self._outputs, *self._drawn.mutates, *(spec.alias for spec in self._outputs.values())}

    def _check_guards(self, plan: Plan) -> None:
        for name, (before, after) in plan.guards.items():
            for side, (begin, end) in (("before", before), ("after", after)):
                expected = self._filled(plan)[begin - plan.base : end - plan.base]
                changed = self._session.arena.raw(begin, end) != expected
                if bool(changed.any()):
                    hits = changed.nonzero().reshape(-1)
                    gap = end - begin - int(hits[-1]) if side == "before" else int(hits[0])
                    raise Verdict(
                        "out-of-bounds",
                        f"{len(hits)} bytes {side} {name} were overwritten, the nearest {gap} bytes away from it",
                    )

    def _check_inputs(self, plan: Plan) -> None:
        for name, value in self._inputs.items():
            if name in self._changeable():
                continue
            changed = bits(self._session.arena.view(plan.places[name])) != bits(value)
            place = locate(changed)
            if place is not None:
                raise Verdict("input-changed", f"input {name}: {place.text()}")
        padded = [name for name in self._inputs if name in self._drawn.layouts]
        if padded and self._changed_within(plan):
            raise Verdict(
                "out-of-bounds", f"bytes between the elements of {', '.join(padded)} (the padding) were overwritten"
            )

    def _changed_within(self, plan: Plan) -> bool:
        image, spans = self._filled(plan), _spans(plan, self._changeable(), plan.end, plan.base)
        return any(
            not torch.equal(self._session.arena.raw(*span), image[span[0] - plan.base : span[1] - plan.base])
            for span in spans
        )


def _put(target: torch.Tensor, values: torch.Tensor) -> None:
    """Copy values, bit by bit where torch can't copy the type, and once where one entry stands for all."""
    if target.dim() and target.stride(0) == 0 and target.shape[0] > 1:
        target, values = target[:1], values[:1]
    if target.dtype.itemsize == 1:
        target, values = target.view(torch.uint8), values.contiguous().view(torch.uint8)
    target.copy_(values)


def _copied(values: torch.Tensor) -> torch.Tensor:
    if values.dtype.itemsize == 1:
        return values.view(torch.uint8).clone().view(values.dtype)
    return values.clone()


def _within(image: torch.Tensor, plan: Plan, place: TensorPlace) -> torch.Tensor:
    """The tensor at a place, as the image of the slot holds it."""
    dtype = getattr(torch, place.dtype)
    as_bytes = dtype if dtype.itemsize > 1 else torch.uint8
    whole = image.view(as_bytes).as_strided(place.shape, place.strides, (place.offset - plan.base) // dtype.itemsize)
    return whole if dtype.itemsize > 1 else whole.view(dtype)


def _spans(plan: Plan, changeable: set[str], end: int, base: int = 0) -> list[tuple[int, int]]:
    """The stretches of [base, end) between the tensors that may change."""
    holes = sorted({(before[1], after[0]) for name, (before, after) in plan.guards.items() if name in changeable})
    begins = [base, *(last for _, last in holes)]
    ends = [*(begin for begin, _ in holes), end]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if end > begin]


def nan_words(size: int, device: str) -> torch.Tensor:
    """At least `size` bytes of random 16-bit words that read as NaN in every float dtype, as int16."""
    count = size // 2
    choice = torch.randint(len(_NAN_WORDS), (min(count, _PATTERN_WORDS),), device=device)
    words = _NAN_WORDS.to(device)[choice]
    return words if count <= _PATTERN_WORDS else words.repeat(-(-count // _PATTERN_WORDS))[:count]


def poisoned(spec: TensorSpec, device: str) -> torch.Tensor:
    """What an output holds before the first call: NaN of many patterns; integers: random bits."""
    dtype = getattr(torch, spec.dtype)
    if dtype == torch.bool:
        return torch.rand(spec.shape, device=device) < 0.5
    size = spec.elements * dtype.itemsize
    if is_float(dtype):
        words = nan_words(size + size % 2, device)
        return words.view(torch.uint8)[:size].view(dtype).view(spec.shape)
    return torch.randint(256, (size,), device=device, dtype=torch.uint8).view(dtype).view(spec.shape)


def repoisoned(poison: torch.Tensor) -> torch.Tensor:
    """What it holds before the second: plausible stale values; integers: all bits flipped, so none is both."""
    if poison.is_floating_point() and poison.dtype.itemsize > 1:
        return torch.randn(poison.shape, device=poison.device).to(poison.dtype)
    if poison.dtype == torch.bool:
        return ~poison
    flipped = ~poison.reshape(-1).view(torch.uint8)
    return flipped.view(poison.dtype).view(poison.shape)


def bits(values: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's elements as integers of the same width."""
    if values.numel() == 0:
        return values.reshape(-1).to(torch.uint8)
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return values.contiguous().view(sizes[values.dtype.itemsize])


def _check_written(first: _Called, again: _Called) -> None:
    """No element held its poison after both calls."""
    both = {name: first.kept[name] & again.kept[name] for name in first.kept}
    if not both or not bool(torch.stack([kept.any() for kept in both.values()]).any()):
        return
    for name, kept in both.items():
        place = locate(kept)
        if place is not None:
            raise Verdict("unwritten", f"output {name}: {place.text().replace('are bad', 'were never written')}")


def _check_returned(done: Done, parameters: tuple[str, ...], outputs: Mapping[str, TensorSpec]) -> None:
    own = {name: spec for name, spec in outputs.items() if not spec.alias}
    if all(name in parameters for name in own):
        return
    for name, spec in own.items():
        got = done.returned.get(name)
        if got is None:
            raise Verdict("not-returned", f"the entry returned no torch.Tensor for {name}")
        if got.shape != spec.shape:
            raise Verdict("shape", f"{name} has shape {got.shape}, and {spec.shape} is declared")
        if got.dtype != spec.dtype:
            raise Verdict("dtype", f"{name} has dtype {got.dtype}, and {spec.dtype} is declared")


def _spec(value: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(value.shape), str(value.dtype).removeprefix("torch."))


def _message(drawn: Drawn, plan: Plan, config: int | None) -> Call:
    arguments: dict[str, Value] = {name: plan.places.get(name, value) for name, value in drawn.inputs.items()}
    places: dict[str, TensorPlace] = {name: plan.places[name] for name, spec in drawn.outputs.items() if not spec.alias}
    return Call(dict(drawn.case.values), arguments, places, config)
