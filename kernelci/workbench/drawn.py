"""What a call is made on: a case's inputs under a draw, how they lie in memory, and what is true of them.

A draw's name is `family:number`, or that and a variant of it, `family:number+variant.name`:

* a layout of an input (`offset3.x`, `transposed.x`): the same values, placed otherwise,
* `poked.x`: one element of x far away has another value, and nothing else; `swapped.x`: two have changed places,
* `alone.rows`: the first entry along the size `rows`, alone; `permuted.rows`: its entries in another order.

The variants of a draw ask what a kernel remembers of the draw itself, or takes from a neighbour.
"""

import math
import random
from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct

from kernelci.reference import LAYOUTS, Case, Reference, TensorSpec
from kernelci.workbench import oracle
from kernelci.workbench.arena import fits
from kernelci.workbench.draws import STRESS, Draw, Sketch, equal, number_of
from kernelci.workbench.narrow import decoded, encoded, facts, is_float

# The interpreter runs a program at a time in Python, so each case gets one normal draw and this many others.
FEW = 2
# A GPU gives every case the families that reveal a narrow accumulator, and some of the others by turns: with all of
# them a kernel of forty cases took up to 20 s on an H200.
REVEALING = ("swinging", "tail", "constant")
SOME = 4
ONE_SHAPE_CASES = 2  # the same shape, checked and timed
VARIED = "normal:0"
NEAR = ("poked", "swapped")  # variants that differ from it in an element or two
VARIANTS = (*NEAR, "alone", "permuted", *LAYOUTS)


class Drawn(Struct, frozen=True):
    """A case's inputs and declared outputs under one draw, and what is true of them."""

    case: Case
    inputs: dict[str, Any]
    outputs: dict[str, TensorSpec]
    truth: oracle.Truth
    layouts: dict[str, str] = {}
    mutates: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Memory that the tensors take."""
        truths = (self.truth.oracle, self.truth.honest, self.truth.moved)
        values: list[Any] = [*self.inputs.values(), *(value for truth in truths for value in truth.values())]
        return sum(value.numel() * value.element_size() for value in values if isinstance(value, torch.Tensor))


def split(name: str) -> tuple[str, str, str]:
    """`normal:0+poked.x` as its draw, its variant and what the variant is of; the latter two may be empty."""
    draw, _, variant = name.partition("+")
    kind, _, of = variant.partition(".")
    return draw, kind, of


def draw_inputs(reference: Reference, case: Case, name: str, seed: str, device: str) -> dict[str, Any]:
    """The inputs of a plain draw."""
    return reference.inputs(case, Draw(name, f"{seed}/{reference.name}/{case.id}", device))


def make(reference: Reference, case: Case, name: str, seed: str, device: str) -> Drawn:
    """Draw, and ask the oracle. Raises ReferenceFailed, and KeyError for a draw that does not exist."""
    plain, kind, of = split(name)
    inputs = draw_inputs(reference, case, plain, seed, device)
    layouts = {of: kind} if kind in LAYOUTS else {}
    if kind == "expanded":
        inputs[of] = inputs[of][:1].expand(inputs[of].shape).contiguous()
    elif kind == "poked":
        inputs[of] = _poked(inputs[of], f"{seed}/{case.id}/{name}")
    elif kind == "swapped":
        inputs[of] = _swapped(inputs[of])
    elif kind == "alone":
        case = case.with_value(of, 1)
        inputs |= {one: inputs[one][:1].contiguous() for one in reference.independent[of]}
    elif kind == "permuted":
        order = permutation(reference, case, name, seed, device)
        inputs |= {one: inputs[one][order] for one in reference.independent[of]}
    outputs = reference.outputs(case, inputs)
    tensors = [value for value in inputs.values() if isinstance(value, torch.Tensor)]
    axes = max((value.ndim for value in tensors), default=0)
    narrow = any(is_float(value.dtype) and value.dtype.itemsize <= 2 for value in tensors)
    truth = oracle.ask(reference, inputs, outputs, equal(plain, axes, narrow))
    return Drawn(case, inputs, outputs, truth, layouts, reference.mutates)


def output_axes(reference: Reference, case: Case, size: str) -> dict[str, int]:
    """Along which axis each output depends on an independent size: the only one that is as long as it, and follows it.
    Outputs without one (a sum over all rows) are left out."""
    length = int(getattr(case, size))
    shapes, longer = (
        {name: spec.shape for name, spec in reference.outputs(one, reference.inputs(one, Sketch())).items()}
        for one in (case, case.with_value(size, length + 1))
    )
    found = {
        name: [axis for axis, pair in enumerate(zip(shape, longer[name], strict=True)) if pair == (length, length + 1)]
        for name, shape in shapes.items()
    }
    return {name: axes[0] for name, axes in found.items() if len(axes) == 1}


def permutation(reference: Reference, case: Case, name: str, seed: str, device: str) -> torch.Tensor:
    """The order in which `permuted` puts the entries."""
    generator = torch.Generator().manual_seed(number_of(f"{seed}/{reference.name}/{case.id}/{name}"))
    return torch.randperm(int(getattr(case, split(name)[2])), generator=generator).to(device)


def _poked(values: torch.Tensor, seed: str) -> torch.Tensor:
    """One element somewhere becomes larger than all others (integers: its neighbour's value; booleans: the other)."""
    poked = values.clone()
    flat = poked.view(torch.uint8).view(-1) if poked.dtype.itemsize == 1 else poked.view(-1)
    at = random.Random(seed).randrange(flat.numel())
    if not is_float(values.dtype):
        flat[at] = (1 - flat[at]) if values.dtype == torch.bool else values.view(-1)[at - 1]
        return poked
    if values.dtype.itemsize == 1 and facts(values.dtype).bits == 4:
        flat[at] ^= 0x88  # both signs
        return poked
    largest = float(decoded(values).abs().nan_to_num(0.0, posinf=0.0).amax())
    new = torch.tensor([min(largest * 1.5 + 1, facts(values.dtype).max)], dtype=torch.float64, device=values.device)
    value = encoded(new, values.dtype)
    flat[at] = value.view(torch.uint8)[0] if values.dtype.itemsize == 1 else value[0]
    return poked


def _swapped(values: torch.Tensor) -> torch.Tensor:
    """The first element and the last one that differs from it change places: every sum over all stays as it was."""
    swapped = values.clone()
    flat = swapped.view(torch.uint8).view(-1) if swapped.dtype.itemsize == 1 else swapped.view(-1)
    others = (flat != flat[0]).nonzero()
    if len(others):
        at = int(others[-1])
        flat[0], flat[at] = flat[at].clone(), flat[0].clone()
    return swapped


def variants(reference: Reference, case: Case) -> tuple[str, ...]:
    """All that a case's inputs allow: each input poked, each declared layout that fits, batches alone and permuted."""
    inputs: dict[str, Any] = reference.inputs(case, Sketch())
    shapes = {name: tuple(value.shape) for name, value in inputs.items() if hasattr(value, "shape")}
    placed = {name: spec.shape for name, spec in reference.outputs(case, inputs).items()} | shapes
    loose = {name: shape for name, shape in shapes.items() if name not in reference.unpoked}
    found = [f"poked.{name}" for name, shape in loose.items() if 0 not in shape]
    found += [f"swapped.{name}" for name, shape in loose.items() if math.prod(shape) > 1]
    for size, names in reference.independent.items():
        if all(name in shapes and shapes[name][0] > 1 and 0 not in shapes[name] for name in names):
            found += [f"alone.{size}", f"permuted.{size}"]
    for name, kinds in reference.layouts.items():
        found += [f"{kind}.{name}" for kind in kinds if fits(placed.get(name, ()), kind)]
    return tuple(f"{VARIED}+{variant}" for variant in found)


def plan(reference: Reference, cases: Sequence[Case], seeds: int, few: bool) -> dict[str, tuple[str, ...]]:
    """The draws of each case, by `planned(case)`: normal ones first. Families that don't fit in (where only `few` are
    run) and variants take turns from case to case, and every layout gets two cases that can have it."""
    varied = [variants(reference, case) for case in cases]
    layouts = _placed(varied)
    return {
        planned(case): _every(varied[turn], seeds, reference.avoided)
        if reference.one_shape and len(cases) <= ONE_SHAPE_CASES
        else tuple(
            name
            for name in _draws(varied[turn], layouts.get(turn, ()), turn, seeds, few)
            if name.partition(":")[0] not in reference.avoided
        )
        for turn, case in enumerate(cases)
    }


def _every(varied: tuple[str, ...], seeds: int, avoided: tuple[str, ...]) -> tuple[str, ...]:
    """All draws at once, where there is no other case to take turns with."""
    families = (f"{family}:0" for family in STRESS if family not in avoided)
    return (*(f"normal:{number}" for number in range(seeds)), *families, *varied)


def planned(case: Case) -> str:
    """The key of a case in a plan: check and bench cases may share a name."""
    return f"{case.kind} {case.id}"


def _placed(varied: Sequence[tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    """Layouts by the number of the case; each of them compiles anew on most backends, so two cases must do."""
    found: dict[int, tuple[str, ...]] = {}
    layouts = [name for name in dict.fromkeys(name for names in varied for name in names) if split(name)[1] in LAYOUTS]
    for step, name in enumerate(layouts):
        fitting = [turn for turn, names in enumerate(varied) if name in names]
        for begin in {len(fitting) // 3, 2 * len(fitting) // 3}:
            turn = fitting[(begin + step) % len(fitting)]
            found[turn] = (*found.get(turn, ()), name)
    return found


def _draws(varied: tuple[str, ...], layouts: tuple[str, ...], turn: int, seeds: int, few: bool) -> tuple[str, ...]:
    stress = tuple(f"{family}:0" for family in STRESS)
    plain = tuple(name for name in varied if split(name)[1] not in LAYOUTS)
    if not few:
        normal = tuple(f"normal:{number}" for number in range(seeds))
        picked = (plain[(turn * FEW + step) % len(plain)] for step in range(min(FEW, len(plain))))
        others = tuple(name for name in stress if name.partition(":")[0] not in REVEALING)
        families = (others[(turn * SOME + step) % len(others)] for step in range(SOME))
        return (*normal, *(f"{family}:0" for family in REVEALING), *families, *dict.fromkeys(picked), *layouts)
    turns = (*layouts, *plain[turn // 2 % len(plain) :][: turn % 2]) if plain else layouts
    families = (stress[(turn * FEW + step) % len(stress)] for step in range(FEW))
    return (VARIED, *(*turns, *families)[: max(FEW, len(layouts))])
