"""Many slots of one case in the arena: fresh values before each window, a check of every slot's outputs after it."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from msgspec import Struct
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.reference import Case, Reference, TensorSpec
from kernelci.workbench import oracle, pieces, pools, workspace
from kernelci.workbench.arena import Arena, Plan, dtype_of, reach, row_major
from kernelci.workbench.compare import settled
from kernelci.workbench.cuda_memory import nothing_persists
from kernelci.workbench.drawn import output_axes
from kernelci.workbench.draws import Sketch
from kernelci.workbench.judging import by_gates, by_reference
from kernelci.workbench.narrow import is_float
from kernelci.workbench.poison import bits, poisoned
from kernelci.workbench.protocol import Call, Spots, TensorPlace, Value, Workspace
from kernelci.workbench.stopwatch import stopwatch
from kernelci.workbench.subject import changeable

FAMILY = "normal:0"
WRONG = "wrong-while-timed"
ENTRIES = (4, 64)  # of each slot along the first independent size (rows), and along the second (columns), at the most
# Rows of few slots are as many together as 64 slots have, where they are of no more elements than that: else who leaves
# one row in a hundred out would pass in most windows of large tensors.
ROWS, ROWS_ELEMENTS = 256, 2**20
WHOLE_ELEMENTS = 2**24  # outputs that are compared whole, of all slots of a window together
SPOILED_BYTES = 2**21  # in one piece, where results are poisoned in place
CHUNK_BYTES = 2**31  # of inputs in float64 at once
CHUNK_ELEMENTS = 2**24  # of outputs at once, each of which takes some 30 float64 while it is compared


class Layout(Struct, frozen=True):
    """Where slots of a case lie: the plan of slot 0, the distance to the next in bytes, and what a slot holds."""

    plan: Plan
    stride: int
    scalars: dict[str, Any]
    specs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    need: workspace.Need = workspace.Need()

    def fits(self, size: int) -> int:
        """How many slots an arena of this size holds, with what serves their calls' allocations behind them."""
        return max(0, size - self.need.once) // (self.stride + self.need.each)

    def bytes(self, count: int) -> int:
        """Size of an arena that holds so many."""
        return count * self.stride + self.need.room(count)

    def call(self, case: Case, config: int | None = None) -> Call:
        """The call on slot 0."""
        arguments: dict[str, Value] = {**self.scalars, **{name: self.plan.places[name] for name in self.specs}}
        own = {name: self.plan.places[name] for name in self.own}
        return Call(dict(case.values), arguments, own, config)

    @property
    def own(self) -> dict[str, TensorSpec]:
        """The outputs that have memory of their own."""
        return {name: spec for name, spec in self.outputs.items() if not spec.alias}

    @property
    def read(self) -> int:
        """Bytes of a slot's inputs."""
        return sum(_bytes(spec) for spec in self.specs.values())

    @property
    def written(self) -> int:
        """Bytes of a slot's outputs."""
        return sum(_bytes(spec) for spec in self.outputs.values())


class Cut(Struct, frozen=True):
    """An independent size: its name and value, the inputs that have it as first axis, and each output's axis of it."""

    name: str
    size: int
    inputs: tuple[str, ...]
    outputs: dict[str, int]


def layout(reference: Reference, case: Case, serves: bool = False) -> Layout:
    """How a case lies in an arena, which may serve what calls allocate too. Raises ReferenceFailed."""
    inputs = reference.inputs(case, Sketch())
    outputs = reference.outputs(case, inputs)
    specs = {
        name: TensorSpec(tuple(value.shape), str(value.dtype).removeprefix("torch."))
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
    }
    plan = Plan({**specs, **outputs})
    scalars = {name: value for name, value in inputs.items() if name not in specs}
    found = Layout(plan, plan.end, scalars, specs, outputs)
    if not serves:
        return found
    return replace(found, need=workspace.need(map(_bytes, found.own.values()), found.read + found.written))


def cuts(reference: Reference, case: Case) -> list[Cut]:
    """The independent sizes that all outputs follow. Of the others no entry can be asked for alone: a sum over all rows
    is none of some rows. Raises ReferenceFailed."""
    sizes = ((name, of) for name, of in reference.independent.items() if isinstance(getattr(case, name, None), int))
    every = set(reference.outputs(case, reference.inputs(case, Sketch())))
    found = [Cut(name, int(getattr(case, name)), of, output_axes(reference, case, name)) for name, of in sizes]
    return [cut for cut in found if set(cut.outputs) == every][: len(ENTRIES)]


class Bank:
    """The slots of one case. `deal` fills them; `check` looks at what a window left there."""

    def __init__(
        self,
        reference: Reference,
        case: Case,
        arena: Arena,
        count: int,
        seed: str,
        entries: tuple[int, int] = ENTRIES,
        edge: int = 1,
    ) -> None:
        """`entries`: so many of each cut are looked at, `edge` at either end among them."""
        self._most, self._edge = entries, edge
        self.reference = reference
        self.case = case
        self.layout = layout(reference, case, arena.serves)
        self.count = count
        self._arena = arena
        self.device = arena.device
        self._random = random.Random(f"{seed}/{reference.name}/{case.id}/slots")
        self._inputs: dict[str, Any] = {}
        self.fill_ns = 0.0
        self._cuts = cuts(reference, case)

    def workspace(self, calls: int) -> Workspace | None:
        """What serves the allocations of so many calls, behind all slots; None where the arena has none."""
        room = self.layout.need.room(calls)
        return workspace.region(self.count * self.layout.stride, room, self._arena.size) if room else None

    def deal(self, count: int | None = None, spots: Mapping[str, Spots] | None = None) -> None:
        """New values for every input of the first `count` slots, and other poison for their outputs, in the slots and
        where they will lie by what a candidate says (`spots`)."""
        seed = f"{self._random.getrandbits(128):x}"
        dealt = self.count if count is None else count
        self._inputs = pools.draw(self.reference, self.case, FAMILY, seed, self._arena.device, dealt, self._random)
        for name, one in (spots or {}).items():
            if self.layout.outputs[name].elements:
                self._spoil(self.layout.outputs[name], one)
        self._lay(dealt)

    def _spoil(self, spec: TensorSpec, spots: Spots) -> None:
        """Poison all from the first to the last of the places where results will lie."""
        size = dtype_of(spec.dtype).itemsize
        begin, end = min(spots.offsets), max(spots.offsets) + reach(spots.shape, spots.strides) * size
        target = self._arena.raw(begin, end)
        width = min(len(target), SPOILED_BYTES)
        rows = len(target) // width
        stale = self._stale(TensorSpec((width // size,), spec.dtype), rows + 1).stacked(rows + 1)
        target[: rows * width].view(rows, width).copy_(stale[:rows].view(torch.uint8))
        target[rows * width :].copy_(stale[rows].view(torch.uint8)[: len(target) - rows * width])

    def _lay(self, count: int, outputs: bool = True) -> None:
        """Put the values that were drawn into the slots, the inputs last, and time it: `fill_ns`."""
        nothing_persists(self.device)  # of what the window before marked: whose it was, and which side's, is all one
        stop = stopwatch(self.device)
        for name, spec in self.layout.outputs.items() if outputs else ():
            if not spec.alias and spec.elements:
                self._put(name, self._stale(spec, count).stacked(count))
        for name, value in self._inputs.items():
            if isinstance(value, pools.Pool):
                self._put(name, value.stacked(count))
        self.fill_ns = stop()

    def _stale(self, spec: TensorSpec, count: int) -> pools.Pool:
        """Plausible values that are not the answer."""
        step = self._random.choice(pools.STEPS)
        dtype = dtype_of(spec.dtype)
        total = TensorSpec((spec.elements + (count - 1) * step,), spec.dtype)
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
        pieces.copy(self.slots_of(name)[: len(values)], values)

    def check(self, count: int, spots: Mapping[str, Spots] | None = None) -> None:
        """The outputs of the first `count` slots are right: where a reference says what is independent, on secret
        entries of each slot, the first and the last among them; else whole, of as many slots as can be afforded.

        `spots`: where they lie by what the candidate says; by default in the slots. Raises Stop("wrong-while-timed")
        with the slot, Stop("refused"), and ReferenceFailed.
        """
        self.require(spots or {}, count)
        slots = torch.tensor(self._chosen(count), device=self._arena.device)
        entries = self._entries(len(slots))
        size = self._at_once(entries)
        for begin in range(0, len(slots), size):
            some = slice(begin, begin + size)
            self._check(slots[some], [table[some] for table in entries], spots or {})

    def require(self, spots: Mapping[str, Spots], count: int) -> None:
        """Raise Stop("refused") for places that can't be those of so many calls' results."""
        workspace.checked(spots, self.layout.own, count, self.workspace(count))

    def _at_once(self, entries: Sequence[torch.Tensor]) -> int:
        """How many slots are checked together, with so many entries of each, for there to be room."""
        bytes_read = 0
        for name, spec in self.layout.specs.items():
            cut = self._cut_of(name)
            bytes_read += _bytes(spec) if cut is None else _bytes(spec) // max(1, spec.shape[0]) * entries[cut].shape[1]
        elements = self._columns() * (entries[0].shape[1] if entries else 1)
        return max(1, min(CHUNK_BYTES // max(1, 4 * bytes_read), CHUNK_ELEMENTS // max(1, elements)))

    def _chosen(self, count: int) -> list[int]:
        """All slots where entries can be picked from each; else as many as may be compared whole: both ends, and at
        least one between them, however large outputs are."""
        elements = sum(spec.elements for spec in self.layout.outputs.values())
        most = max(3, WHOLE_ELEMENTS // max(1, elements))
        if self._cuts or count <= most:
            return list(range(count))
        inner = list(range(1, count - 1))
        return sorted({0, count - 1, *self._random.sample(inner, min(len(inner), most - 2))})

    def _cut_of(self, name: str) -> int | None:
        """Which of the cuts an input is cut by."""
        return next((number for number, cut in enumerate(self._cuts) if name in cut.inputs), None)

    def _check(self, slots: torch.Tensor, entries: list[torch.Tensor], spots: Mapping[str, Spots]) -> None:
        inputs = {name: self._picked(name, value, slots, entries) for name, value in self._inputs.items()}
        sliced = self._specs(entries)
        asked = cache(partial(oracle.ask_stacked, self.reference, inputs, sliced, len(slots)))
        for name in sliced:
            index = {cut.outputs[name]: some for cut, some in zip(self._cuts, entries, strict=True)}
            actual = self._left(name, slots, index, spots.get(name)).contiguous()
            if not self._own(name, actual, asked(False), inputs, slots):
                self._gates(name, actual, asked, slots)
        may_change = changeable(self.layout.outputs, self.reference.mutates)
        for name in (name for name in self.layout.specs if name not in may_change):
            self._require_unchanged(name, inputs[name], slots, entries)

    def _require_unchanged(
        self, name: str, dealt: torch.Tensor, slots: torch.Tensor, entries: list[torch.Tensor]
    ) -> None:
        """The chosen entries of an input are as they were dealt. Raises Stop."""
        if not dealt.numel():
            return
        now = pieces.gathered(self.slots_of(name), slots, self._index(name, entries))
        changed = (bits(now) != bits(dealt)).view(len(slots), -1).any(dim=1)
        if bool(changed.any()):
            raise Stop(WRONG, f"input {name} of slot {int(slots[changed][0])} was changed")

    def result(self, name: str, slot: int, spots: Mapping[str, Spots]) -> torch.Tensor:
        """An output of one slot, from where it lies."""
        one = spots.get(name)
        if one is None:
            return self.slots_of(name)[slot]
        return self._arena.view(TensorPlace(one.offsets[slot], one.shape, one.strides, one.dtype))

    def _left(
        self, name: str, slots: torch.Tensor, index: dict[int, torch.Tensor], spots: Spots | None
    ) -> torch.Tensor:
        """Chosen entries of an output of these slots, from where it lies."""
        if spots is None:
            return pieces.gathered(self.slots_of(name), slots, index)
        dtype = dtype_of(spots.dtype)
        size = self._arena.size // dtype.itemsize * dtype.itemsize
        memory = self._arena.raw(0, size)
        found = workspace.entries(memory.view(pieces.seen_as(dtype)), spots, slots.tolist(), index)
        return found.view(dtype)

    def _entries(self, slots: int) -> list[torch.Tensor]:
        """For each cut, which entries of each slot: (slots, entries). They differ from slot to slot."""
        counts = (self._rows(slots), self._most[1])
        return [
            self._some(slots, cut.size, min(count, cut.size)).to(self._arena.device)
            for cut, count in zip(self._cuts, counts, strict=False)
        ]

    def _rows(self, slots: int) -> int:
        """How many rows of each slot: more where slots are few, fewer where not so many elements are affordable."""
        columns = max(1, self._columns())
        more = min(ROWS // max(1, slots), ROWS_ELEMENTS // columns)
        return min(max(self._most[0], more), max(1, WHOLE_ELEMENTS // max(1, slots * columns)))

    def _columns(self) -> int:
        """Output elements of one row, as far as a second cut leaves them."""
        elements = sum(spec.elements for spec in self.layout.outputs.values())
        for number, cut in enumerate(self._cuts):
            elements = elements // max(1, cut.size) * (self._most[1] if number else 1)
        return elements

    def _some(self, slots: int, size: int, count: int) -> torch.Tensor:
        """Secret entries of each slot: the first and the last ones among them where there is room for more; else those
        of any two slots."""
        if count >= size:
            return torch.arange(size).expand(slots, size)
        secret = torch.Generator().manual_seed(self._random.getrandbits(63))
        table = torch.randint(size, (slots, count), generator=secret)
        edge = min(self._edge, (count - 1) // 2)  # whatever there is room for, not only the ends
        if edge:
            table[:, : 2 * edge] = torch.tensor([*range(edge), *range(size - edge, size)])
        elif slots > 1 or self._random.random() < 2 / 3:
            ends = torch.tensor([0, size - 1])[torch.randperm(2, generator=secret)]
            at = torch.randperm(slots, generator=secret)[:2]
            table[at, 0] = ends[: len(at)]
        return table

    def _picked(self, name: str, value: Any, slots: torch.Tensor, entries: list[torch.Tensor]) -> Any:
        if not isinstance(value, pools.Pool):
            return value
        return pieces.gathered(value.stacked(int(slots[-1]) + 1), slots, self._index(name, entries))

    def _index(self, name: str, entries: list[torch.Tensor]) -> dict[int, torch.Tensor]:
        """Which entries of an input are looked at, by axis; nothing: all."""
        cut = self._cut_of(name)
        return {} if cut is None else {0: entries[cut]}

    def _specs(self, entries: list[torch.Tensor]) -> dict[str, TensorSpec]:
        case = self.case
        for cut, some in zip(self._cuts, entries, strict=True):
            case = case.with_value(cut.name, some.shape[1])
        return self.reference.outputs(case, self.reference.inputs(case, Sketch()))

    def _own(
        self, name: str, actual: torch.Tensor, truth: oracle.Truth, inputs: dict[str, Any], slots: torch.Tensor
    ) -> bool:
        """Whether the reference compares this output itself. Raises Stop."""
        for number, values in enumerate(actual if self.reference.compares else ()):
            one = {key: value[number] if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}
            found = by_reference(self.reference, name, values, truth.oracle[name][number], one)
            if found is None:
                return False
            if not found.passed:
                raise Stop(WRONG, f"output {name} of slot {int(slots[number])} is wrong: {found.said}")
        return self.reference.compares

    def _gates(
        self, name: str, actual: torch.Tensor, asked: Callable[[bool], oracle.Truth], slots: torch.Tensor
    ) -> None:
        shapes = [spec.shape for spec in self.layout.specs.values()]
        for twice in (False, True):  # what an ulp costs only allows more: it is asked where that decides
            (found,) = settled([by_gates(self.reference, name, actual, asked(twice), shapes)])
            if found.passed:
                return
        bad = found.bad.reshape(len(slots), -1).any(dim=1)
        first = int(slots[int(bad.nonzero()[0])]) if bool(bad.any()) else 0
        share = float(bad.float().mean())
        raise Stop(
            WRONG,
            f"output {name} of slot {first} is wrong ({share:.0%} of the slots that were checked): "
            f"max abs error {found.errors.max_abs:.3g}, {found.worst_ratio:.3g} times the bound",
        )


def _bytes(spec: TensorSpec) -> int:
    return int(spec.elements * dtype_of(spec.dtype).itemsize)
