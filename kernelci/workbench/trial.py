"""A trial: one case and draw through the candidate, twice, with fresh poison and guard zones each time.

It answers what needs no oracle: did the call return, in the right shape and dtype, without touching anything but its
outputs, did it write every element, and did it do the same twice.
"""

from collections.abc import Mapping
from typing import Any

import torch
from msgspec import Struct

from kernelci.errors import Verdict
from kernelci.reference import Case, TensorSpec
from kernelci.workbench.arena import GUARD_BYTES, Plan
from kernelci.workbench.location import locate
from kernelci.workbench.protocol import Call, Done, TensorPlace, Value
from kernelci.workbench.session import Session

# 16-bit words that are NaN in fp16, bf16, fp32 and fp64 alike, whichever part of a number they fall on.
_NAN_WORDS = torch.tensor(
    [sign | word for sign in (0x0000, -0x8000) for word in range(0x7FF1, 0x8000)], dtype=torch.int16
)


class Trial(Struct, frozen=True):
    """What a call left: outputs on the referee's own memory, and whether the second call gave the same bits."""

    outputs: dict[str, torch.Tensor]
    repeated: bool


def run(session: Session, case: Case, inputs: Mapping[str, Any], outputs: Mapping[str, TensorSpec]) -> Trial:
    """Call twice and check. Raises Verdict with the reason and place of what went wrong."""
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    specs = {name: _spec(value) for name, value in tensors.items()} | dict(outputs)
    plan = Plan(specs)
    session.reserve(plan.end)
    slot = _Slot(session, plan, tensors, outputs)
    message = _message(case, inputs, plan, outputs)
    poison = {name: poisoned(spec, session.arena.device) for name, spec in outputs.items()}
    first = slot.call(message, poison)
    second = slot.call(message, {name: repoisoned(value) for name, value in poison.items()})
    _check_written(outputs, first, second)
    same = all(torch.equal(bits(first.values[name]), bits(second.values[name])) for name in outputs)
    return Trial(first.values, same)


class _Called(Struct, frozen=True):
    values: dict[str, torch.Tensor]
    poison: dict[str, torch.Tensor]


class _Slot:
    """A slot of the arena for one case: fills it, calls, and checks what must not have changed."""

    def __init__(
        self, session: Session, plan: Plan, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, TensorSpec]
    ) -> None:
        self._session = session
        self._plan = plan
        self._inputs = inputs
        self._outputs = outputs
        self._device = session.arena.device

    def call(self, message: Call, poison: dict[str, torch.Tensor]) -> _Called:
        """Fill inputs, poison and guards; call; check guards and inputs."""
        arena, plan = self._session.arena, self._plan
        guard = nan_words(2 * GUARD_BYTES, self._device).view(torch.uint8)
        for zone in self._zones():
            arena.raw(*zone).copy_(guard[: zone[1] - zone[0]])
        for name, value in self._inputs.items():
            arena.view(plan.places[name]).copy_(value)
        for name, value in poison.items():
            arena.view(plan.places[name]).copy_(value)
        self._settle()
        done = self._session.call(message)
        _check_returned(done, self._session.parameters, self._outputs)
        self._check_guards(guard)
        self._check_inputs()
        return _Called({name: arena.view(plan.places[name]).clone() for name in self._outputs}, poison)

    def _zones(self) -> list[tuple[int, int]]:
        return [zone for pair in self._plan.guards.values() for zone in pair]

    def _settle(self) -> None:
        if self._device != "cpu":
            torch.cuda.synchronize()

    def _check_guards(self, guard: torch.Tensor) -> None:
        for name, (before, after) in self._plan.guards.items():
            for side, (begin, end) in (("before", before), ("after", after)):
                changed = self._session.arena.raw(begin, end) != guard[: end - begin]
                if bool(changed.any()):
                    hits = changed.nonzero().reshape(-1)
                    gap = end - begin - int(hits[-1]) if side == "before" else int(hits[0])
                    raise Verdict(
                        "out-of-bounds",
                        f"{len(hits)} bytes {side} {name} were overwritten, the nearest {gap} bytes away from it",
                    )

    def _check_inputs(self) -> None:
        for name, value in self._inputs.items():
            changed = bits(self._session.arena.view(self._plan.places[name])) != bits(value)
            place = locate(changed)
            if place is not None:
                raise Verdict("input-changed", f"input {name}: {place.text()}")


def nan_words(size: int, device: str) -> torch.Tensor:
    """`size` bytes of random 16-bit words that read as NaN in every float dtype, as int16."""
    choice = torch.randint(len(_NAN_WORDS), (size // 2,), device=device)
    return _NAN_WORDS.to(device)[choice]


def poisoned(spec: TensorSpec, device: str) -> torch.Tensor:
    """What an output holds before the first call: NaN of many patterns; integers: random bits."""
    dtype = getattr(torch, spec.dtype)
    if dtype == torch.bool:
        return torch.rand(spec.shape, device=device) < 0.5
    size = spec.elements * dtype.itemsize
    if dtype.is_floating_point:
        words = nan_words(size + size % 2, device)
        return words.view(torch.uint8)[:size].view(dtype).view(spec.shape)
    return torch.randint(256, (size,), device=device, dtype=torch.uint8).view(dtype).view(spec.shape)


def repoisoned(poison: torch.Tensor) -> torch.Tensor:
    """What it holds before the second: plausible stale values; integers: all bits flipped, so none is both."""
    if poison.is_floating_point():
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


def _check_written(outputs: Mapping[str, TensorSpec], first: _Called, second: _Called) -> None:
    for name in outputs:
        kept = [bits(called.values[name]) == bits(called.poison[name]) for called in (first, second)]
        place = locate(kept[0] & kept[1])
        if place is not None:
            raise Verdict("unwritten", f"output {name}: {place.text().replace('are bad', 'were never written')}")


def _check_returned(done: Done, parameters: tuple[str, ...], outputs: Mapping[str, TensorSpec]) -> None:
    if all(name in parameters for name in outputs):
        return
    for name, spec in outputs.items():
        got = done.returned.get(name)
        if got is None:
            raise Verdict("not-returned", f"the entry returned no torch.Tensor for {name}")
        if got.shape != spec.shape:
            raise Verdict("shape", f"{name} has shape {got.shape}, and {spec.shape} is declared")
        if got.dtype != spec.dtype:
            raise Verdict("dtype", f"{name} has dtype {got.dtype}, and {spec.dtype} is declared")


def _spec(value: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(value.shape), str(value.dtype).removeprefix("torch."))


def _message(case: Case, inputs: Mapping[str, Any], plan: Plan, outputs: Mapping[str, TensorSpec]) -> Call:
    arguments: dict[str, Value] = {name: plan.places.get(name, value) for name, value in inputs.items()}
    places: dict[str, TensorPlace] = {name: plan.places[name] for name in outputs}
    return Call(dict(case.values), arguments, places)
