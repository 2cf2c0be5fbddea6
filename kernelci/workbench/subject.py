"""A case under one draw, as calls see it: its tensors in a slot, the message of a call, and what a call may change."""

from collections.abc import Iterable, Mapping

import torch

from kernelci.errors import Stop
from kernelci.reference import TensorSpec
from kernelci.workbench.arena import Arena, Plan, dtype_of
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.location import locate
from kernelci.workbench.poison import bits, poisoned
from kernelci.workbench.protocol import Call, Done, TensorPlace, Value

# Half the calls find their slot where it was, the others in one of so many other places.
MOVES = 64
MOVE_BYTES = 256
Poison = dict[str, torch.Tensor]


class Subject:
    """What is called. `config`: the number that autotuners are pinned to."""

    def __init__(self, drawn: Drawn, config: int | None = None) -> None:
        self._drawn = drawn
        self._config = config
        self._inputs = {name: value for name, value in drawn.inputs.items() if isinstance(value, torch.Tensor)}
        self._specs = {name: _spec(value) for name, value in self._inputs.items()} | drawn.outputs
        self.outputs = drawn.outputs
        # Reserved whole from the start: an arena that grows needs a fresh candidate, which remembers nothing.
        self.size = Plan(self._specs, MOVES * MOVE_BYTES, drawn.layouts).end

    @property
    def placed_otherwise(self) -> bool:
        """Whether an input has a layout that a kernel may refuse."""
        return bool(self._drawn.layouts)

    def plan(self, base: int) -> Plan:
        """The slot that begins there."""
        return Plan(self._specs, base, self._drawn.layouts)

    def poison(self, device: str) -> Poison:
        """New poison for every output that has memory of its own."""
        return {name: poisoned(spec, device) for name, spec in self.outputs.items() if not spec.alias}

    def zeros(self, device: str) -> Poison:
        """Zeros in place of poison, for calls whose outputs nobody judges by it."""
        return {
            name: torch.zeros(spec.shape, dtype=dtype_of(spec.dtype), device=device)
            for name, spec in self.outputs.items()
            if not spec.alias
        }

    def message(self, plan: Plan) -> Call:
        """The call on a slot."""
        values = self._drawn.inputs
        arguments: dict[str, Value] = {name: plan.places.get(name, value) for name, value in values.items()}
        places = {name: plan.places[name] for name, spec in self.outputs.items() if not spec.alias}
        return Call(dict(self._drawn.case.values), arguments, places, self._config)

    def fill(self, slot: torch.Tensor, plan: Plan, poison: Poison) -> None:
        """Put inputs and poison into a slot's bytes."""
        for name, value in (self._inputs | poison).items():
            _put(_within(slot, plan, plan.places[name]), value)

    def values(self, arena: Arena, plan: Plan) -> dict[str, torch.Tensor]:
        """Copies of the outputs."""
        return {name: _copied(arena.view(plan.places[name])) for name in self.outputs}

    def accept(self, arena: Arena, plan: Plan) -> None:
        """Take what a call may change as it is now for how it should be: elements, not what a layout leaves between."""
        slot, names = arena.expected(plan.base, plan.end), self._changeable()
        for place in {place for name, place in plan.places.items() if name in names}:
            _put(_within(slot, plan, place), arena.view(place))

    def _changeable(self) -> set[str]:
        """Names of what a kernel may write to."""
        return changeable(self.outputs, self._drawn.mutates)

    def check_returned(self, done: Done, parameters: tuple[str, ...]) -> None:
        """Raise Stop where the entry returned something else than is declared."""
        own = {name: spec for name, spec in self.outputs.items() if not spec.alias}
        if all(name in parameters for name in own):
            return
        for name, spec in own.items():
            got = done.returned.get(name)
            if got is None:
                raise Stop("not-returned", f"the entry returned no torch.Tensor for {name}")
            if got.shape != spec.shape:
                raise Stop("shape", f"{name} has shape {got.shape}, and {spec.shape} is declared")
            if got.dtype != spec.dtype:
                raise Stop("dtype", f"{name} has dtype {got.dtype}, and {spec.dtype} is declared")

    def check_surroundings(self, arena: Arena, plan: Plan) -> None:
        """Raise Stop with the place where guard zones, inputs, or the bytes between elements changed."""
        self._check_guards(arena, plan)
        self._check_inputs(arena, plan)

    def _check_guards(self, arena: Arena, plan: Plan) -> None:
        for name, (before, after) in plan.guards.items():
            for side, (begin, end) in (("before", before), ("after", after)):
                changed = arena.raw(begin, end) != arena.expected(begin, end)
                if bool(changed.any()):
                    hits = changed.nonzero().reshape(-1)
                    gap = end - begin - int(hits[-1]) if side == "before" else int(hits[0])
                    raise Stop(
                        "out-of-bounds",
                        f"{len(hits)} bytes {side} {name} were overwritten, the nearest {gap} bytes away from it",
                    )

    def _check_inputs(self, arena: Arena, plan: Plan) -> None:
        for name, value in self._inputs.items():
            if name in self._changeable():
                continue
            place = locate(bits(arena.view(plan.places[name])) != bits(value))
            if place is not None:
                raise Stop("input-changed", f"input {name}: {place.text()}")
        padded = self._drawn.layouts
        if padded and not torch.equal(arena.raw(plan.base, plan.end), arena.expected(plan.base, plan.end)):
            raise Stop(
                "out-of-bounds", f"bytes between the elements of {', '.join(padded)} (the padding) were overwritten"
            )


def changeable(outputs: Mapping[str, TensorSpec], mutates: Iterable[str]) -> set[str]:
    """Names of what a kernel may write to: outputs, inputs that they lie in, inputs that may change."""
    return {*outputs, *mutates, *(spec.alias for spec in outputs.values())}


def _put(target: torch.Tensor, values: torch.Tensor) -> None:
    """Copy values, bit by bit where torch can't copy the type, and once where one entry stands for all."""
    if target.dim() and target.stride(0) == 0 and target.shape[0] > 1:
        target, values = target[:1], values[:1]
    if target.dtype.itemsize == 1:
        target, values = target.view(torch.uint8), values.view(torch.uint8)
    target.copy_(values)


def _copied(values: torch.Tensor) -> torch.Tensor:
    if values.dtype.itemsize == 1:
        return values.view(torch.uint8).clone().view(values.dtype)
    return values.clone()


def _within(slot: torch.Tensor, plan: Plan, place: TensorPlace) -> torch.Tensor:
    """The tensor at a place, as the bytes of the slot hold it."""
    dtype = getattr(torch, place.dtype)
    as_bytes = dtype if dtype.itemsize > 1 else torch.uint8
    begin = slot.storage_offset() + place.offset - plan.base
    whole = slot.view(as_bytes).as_strided(place.shape, place.strides, begin // dtype.itemsize)
    return whole if dtype.itemsize > 1 else whole.view(dtype)


def _spec(value: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(value.shape), str(value.dtype).removeprefix("torch."))
