"""Many slots of one case in the arena: fresh values before each window, a check of every slot's outputs after it."""

import math
import random
import time
from collections.abc import Callable
from typing import Any

import torch
from msgspec import Struct

from kernelci.errors import Verdict
from kernelci.reference import Case, Reference, TensorSpec
from kernelci.workbench import oracle, pools
from kernelci.workbench.arena import Arena, Plan, dtype_of, row_major
from kernelci.workbench.compare import compare
from kernelci.workbench.draws import Sketch
from kernelci.workbench.narrow import is_float
from kernelci.workbench.protocol import Call, Value
from kernelci.workbench.trial import poisoned

FAMILY = "normal:0"
ROWS = 4  # of each slot: the first, the last, and this many less two that are secret
WHOLE_ELEMENTS = 2**24  # outputs that are compared whole, of all slots of a window together
CHUNK_BYTES = 2**31  # of inputs in float64 at once


class Layout(Struct, frozen=True):
    """Where slots of a case lie: the plan of slot 0, the distance to the next in bytes, and what a slot holds."""

    plan: Plan
    stride: int
    scalars: dict[str, Any]
    specs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]

    def call(self, case: Case, config: int | None = None) -> Call:
        """The call on slot 0."""
        arguments: dict[str, Value] = {**self.scalars, **{name: self.plan.places[name] for name in self.specs}}
        own = {name: self.plan.places[name] for name, spec in self.outputs.items() if not spec.alias}
        return Call(dict(case.values), arguments, own, config)

    @property
    def read(self) -> int:
        """Bytes of a slot's inputs."""
        return sum(_bytes(spec) for spec in self.specs.values())

    @property
    def written(self) -> int:
        """Bytes of a slot's outputs."""
        return sum(_bytes(spec) for spec in self.outputs.values())


def layout(reference: Reference, case: Case) -> Layout:
    """How a case lies in the arena. Raises ReferenceFailed."""
    inputs = reference.inputs(case, Sketch())
    outputs = reference.outputs(case, inputs)
    specs = {
        name: TensorSpec(tuple(value.shape), str(value.dtype).removeprefix("torch."))
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
    }
    plan = Plan({**specs, **outputs})
    scalars = {name: value for name, value in inputs.items() if name not in specs}
    return Layout(plan, plan.end, scalars, specs, outputs)


class Bank:
    """The slots of one case. `deal` fills them; `check` looks at what a window left there."""

    def __init__(self, reference: Reference, case: Case, arena: Arena, count: int, seed: str) -> None:
        self.reference = reference
        self.case = case
        self.layout = layout(reference, case)
        self.count = count
        self._arena = arena
        self._random = random.Random(f"{seed}/{reference.name}/{case.id}/slots")
        self._inputs: dict[str, Any] = {}
        self.fill_ns = 0.0

    def deal(self) -> None:
        """New values for every input of every slot, and other poison for every output, then wait for the device."""
        step, seed = self._random.randint(*pools.STEP_ELEMENTS), f"{self._random.getrandbits(128):x}"
        self._inputs = pools.draw(self.reference, self.case, FAMILY, seed, self._arena.device, self.count, step)
        self.lay()

    def lay(self) -> None:
        """Put the values that were drawn into the slots, the inputs last, and time it: `fill_ns`."""
        stop = stopwatch(self._arena.device)
        for name, spec in self.layout.outputs.items():
            if not spec.alias and spec.elements:
                self._put(name, self._stale(spec).stacked(self.count))
        for name, value in self._inputs.items():
            if isinstance(value, pools.Pool):
                self._put(name, value.stacked(self.count))
        self.fill_ns = stop()

    def _stale(self, spec: TensorSpec) -> pools.Pool:
        """Plausible values that are not the answer."""
        step = self._random.randint(*pools.STEP_ELEMENTS)
        dtype = dtype_of(spec.dtype)
        total = TensorSpec((spec.elements + (self.count - 1) * step,), spec.dtype)
        wide = is_float(dtype) and dtype.itemsize > 1
        values = (
            torch.randn(total.shape, device=self._arena.device).to(dtype)
            if wide
            else poisoned(total, self._arena.device)
        )
        return pools.Pool(values, spec.shape, step)

    def slots_of(self, name: str) -> torch.Tensor:
        """A tensor of all slots as one view of the arena: shape (count, …)."""
        place = self.layout.plan.places[name]
        dtype = dtype_of(place.dtype)
        reach = (self.count - 1) * self.layout.stride + math.prod(place.shape) * dtype.itemsize
        flat = self._arena.raw(place.offset, place.offset + reach).view(dtype)
        return flat.as_strided(
            (self.count, *place.shape), (self.layout.stride // dtype.itemsize, *row_major(place.shape))
        )

    def _put(self, name: str, values: torch.Tensor) -> None:
        if values.numel() == 0:
            return
        target = self.slots_of(name)
        if values.dtype.itemsize == 1:  # torch copies few of the narrow types
            target, values = target.view(torch.uint8), values.view(torch.uint8)
        target.copy_(values)

    def check(self, count: int) -> None:
        """The outputs of the first `count` slots are right: of large ones a few rows, always the first and the last.

        Raises Verdict("wrong") with the slot, and ReferenceFailed.
        """
        slots, rows = self._chosen(count), self._some_rows()
        for some in _chunks(slots, max(1, CHUNK_BYTES // max(1, 4 * self.layout.read))):
            self._check(torch.tensor(some, device=self._arena.device), rows)

    def _some_rows(self) -> torch.Tensor | None:
        """Secret rows along the axis on which outputs are independent; None where they must be taken whole."""
        axis = next(iter(self.reference.independent), None)
        if axis is None:
            return None
        size = int(getattr(self.case, axis))
        chosen = {0, size - 1, *(self._random.randrange(size) for _ in range(ROWS - 2))}
        return torch.tensor(sorted(chosen), device=self._arena.device)

    def _chosen(self, count: int) -> list[int]:
        """All slots where rows can be picked from each; else as many as may be compared whole, the ends among them."""
        if self.reference.independent:
            return list(range(count))
        elements = sum(spec.elements for spec in self.layout.outputs.values())
        most = max(2, WHOLE_ELEMENTS // max(1, elements))
        inner = list(range(1, count - 1))
        if count <= most:
            return list(range(count))
        return sorted({0, count - 1, *self._random.sample(inner, min(len(inner), most - 2))})

    def _check(self, slots: torch.Tensor, rows: torch.Tensor | None) -> None:
        inputs = {name: self._picked(name, value, slots, rows) for name, value in self._inputs.items()}
        sliced = self._specs(len(rows) if rows is not None else None)
        truth = oracle.ask_stacked(self.reference, inputs, sliced, len(slots))
        for name, spec in sliced.items():
            actual = _gathered(self.slots_of(name), slots, rows)
            self._compare(name, actual, truth, slots, spec)

    def _picked(self, name: str, value: Any, slots: torch.Tensor, rows: torch.Tensor | None) -> Any:
        if not isinstance(value, pools.Pool):
            return value
        independent = next(iter(self.reference.independent.values()), ())
        return _gathered(value.stacked(self.count), slots, rows if name in independent else None)

    def _specs(self, rows: int | None) -> dict[str, TensorSpec]:
        if rows is None:
            return self.layout.outputs
        axis = next(iter(self.reference.independent))
        case = self.case.with_value(axis, rows)
        return self.reference.outputs(case, self.reference.inputs(case, Sketch()))

    def _compare(
        self, name: str, actual: torch.Tensor, truth: oracle.Truth, slots: torch.Tensor, spec: TensorSpec
    ) -> None:
        reference = self.reference
        terms = max((one.shape[-1] for one in self.layout.specs.values() if one.shape), default=0)
        found = compare(
            name,
            actual.contiguous(),
            truth.oracle[name],
            truth.honest[name],
            reference.precision,
            reference.nan_allowed,
            reference.budget,
            terms,
        )
        if not found.passed:
            bad = found.bad.reshape(len(slots), -1).any(dim=1)
            first = int(slots[int(bad.nonzero()[0])]) if bool(bad.any()) else 0
            share = float(bad.float().mean())
            raise Verdict(
                "wrong-while-timed",
                f"output {name} of slot {first} is wrong ({share:.0%} of the slots that were checked): "
                f"max abs error {found.errors.max_abs:.3g}, {found.worst_ratio:.3g} times the bound",
            )


def stopwatch(device: str) -> Callable[[], float]:
    """Started now; calling it waits for the referee's own work, and gives ns by the device's clock."""
    if device == "cpu":
        began = time.perf_counter_ns()
        return lambda: float(time.perf_counter_ns() - began)
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()

    def stop() -> float:
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last) * 1e6)

    return stop


def _gathered(stacked: torch.Tensor, slots: torch.Tensor, rows: torch.Tensor | None) -> torch.Tensor:
    """Of shape (all slots, all rows, …): these slots, and of each these rows, without a copy of the rest."""
    narrow = stacked.dtype.itemsize == 1
    source = stacked.view(torch.uint8) if narrow else stacked
    found = source[slots] if rows is None else source[slots[:, None], rows[None, :]]
    return found.view(stacked.dtype) if narrow else found


def _bytes(spec: TensorSpec) -> int:
    return int(spec.elements * dtype_of(spec.dtype).itemsize)


def _chunks(values: list[int], size: int) -> list[list[int]]:
    return [values[begin : begin + size] for begin in range(0, len(values), size)]
