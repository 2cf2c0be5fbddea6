"""Memory behind the slots that serves what calls allocate, so that what an entry returns need not be copied.

A candidate says where its results lie; the referee looks there, and only there. Little can be won by a false claim: it
must lie in the region, which is poisoned before every window, and each slot's values must be right for its own inputs.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence

import torch
from msgspec import Struct

from kernelci.errors import Stop
from kernelci.reference import TensorSpec
from kernelci.workbench.arena import dtype_of, reach
from kernelci.workbench.protocol import Source, Spots, Workspace

MIB = 2**20
SEGMENT_BYTES = 2 * MIB  # of torch's allocator, for tensors up to a MiB; those up to ten share segments of twenty
TEMPORARIES = 3  # times the bytes of a call's inputs and outputs may be alive at once, besides its results


class Need(Struct, frozen=True):
    """Bytes of a region: for the results of each slot, and once for what a call allocates besides."""

    each: int = 0
    once: int = 0

    def room(self, slots: int) -> int:
        """For so many slots."""
        return slots * self.each + self.once


def need(outputs: Iterable[int], touched: int) -> Need:
    """What a case needs whose outputs have these sizes and whose calls touch so many bytes."""
    return Need(sum(_taken(size) for size in outputs), _whole(TEMPORARIES * touched, 20 * MIB) + 40 * MIB)


def _taken(size: int) -> int:
    """What torch's allocator takes for a tensor, its share of a segment."""
    if size <= MIB:
        return SEGMENT_BYTES // (SEGMENT_BYTES // max(512, _whole(size, 512)))
    return 20 * MIB // (20 * MIB // size) if size < 10 * MIB else _whole(size, SEGMENT_BYTES)


def _whole(size: int, step: int) -> int:
    return -(-size // step) * step


def region(begin: int, size: int, end: int) -> Workspace:
    """A region that begins behind `begin` and has so many bytes, fewer where the arena ends, perhaps none."""
    begin = _whole(begin, SEGMENT_BYTES)
    return Workspace(begin, max(0, min(size, end - begin)) // SEGMENT_BYTES * SEGMENT_BYTES)


def takes(source: Source, entry: str, outputs: Iterable[str]) -> bool:
    """Whether a kernel file shows that its entry takes its outputs by name, so that it returns none.

    It is read as text, and decides only how much memory is reserved.
    """
    try:
        tree = ast.parse(source.files[source.name])
    except (SyntaxError, ValueError):
        return False
    found = [node.args for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry]
    names = {one.arg for each in found[-1:] for one in (*each.posonlyargs, *each.args, *each.kwonlyargs)}
    return set(outputs) <= names


def checked(spots: Mapping[str, Spots], outputs: Mapping[str, TensorSpec], count: int, where: Workspace | None) -> None:
    """Raises Stop("refused") for a claim that can't be: another shape or dtype, or beyond the region."""
    if not spots:
        return
    if where is None or set(spots) != set(outputs):
        raise Stop("refused", "the candidate tells of results that it was not asked for")
    for name, one in spots.items():
        spec, size = outputs[name], dtype_of(outputs[name].dtype).itemsize
        same = (one.shape, one.dtype, len(one.strides)) == (spec.shape, spec.dtype, len(spec.shape))
        last = where.begin + where.size - reach(one.shape, one.strides) * size if same else -1
        inside = all(where.begin <= offset <= last and offset % size == 0 for offset in one.offsets)
        if len(one.offsets) != count or not inside:
            raise Stop("refused", f"the candidate says that output {name} lies where it can't")


def entries(memory: torch.Tensor, spots: Spots, slots: Sequence[int], some: Mapping[int, torch.Tensor]) -> torch.Tensor:
    """Of the results of these slots the chosen entries: `memory` is the whole arena in the results' dtype, flat.

    `some` maps an axis to indices of shape (slots, entries of each slot); other axes are whole. Shape (slots, …).
    """
    size, axes = memory.dtype.itemsize, len(spots.shape)
    first = [spots.offsets[slot] // size for slot in slots]
    index = torch.tensor(first, device=memory.device).view(-1, *[1] * axes)
    for axis, (length, stride) in enumerate(zip(spots.shape, spots.strides, strict=True)):
        chosen = some.get(axis, torch.arange(length, device=memory.device).expand(len(slots), -1))
        index = index + stride * chosen.view(len(slots), *[1] * axis, -1, *[1] * (axes - axis - 1))
    return memory[index]
