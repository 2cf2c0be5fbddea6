"""Tensors of many slots as one: copied all at once, and looked at in a few entries of each."""

import torch

WORD_BYTES = 8


def seen_as(dtype: torch.dtype) -> torch.dtype:
    """A dtype of the same size that torch can index and copy: it can do little with the narrow ones."""
    return torch.uint8 if dtype.itemsize == 1 else dtype


def copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy tensors of one shape (count, …) and dtype, whose slots each lie in one piece: in words where all of them are
    of whole words."""
    target, source = _in_pieces(target), _in_pieces(source)
    if has_words(target) and has_words(source):
        target, source = target.view(torch.int64), source.view(torch.int64)
    target.copy_(source)


def _in_pieces(stacked: torch.Tensor) -> torch.Tensor:
    return stacked.view(len(stacked), -1).view(seen_as(stacked.dtype))


def has_words(pieces: torch.Tensor) -> bool:
    """Whether pieces of shape (count, elements) are of whole words of eight bytes, and begin at one."""
    places = (pieces.shape[1], pieces.stride(0), pieces.storage_offset())
    whole = all(place * pieces.element_size() % WORD_BYTES == 0 for place in places)
    return whole and pieces.element_size() < WORD_BYTES and pieces.data_ptr() % WORD_BYTES == 0


def gathered(stacked: torch.Tensor, slots: torch.Tensor, entries: dict[int, torch.Tensor]) -> torch.Tensor:
    """Of a tensor of shape (all slots, …): these slots, and along some of the other axes only these entries.

    `entries` maps an axis (0 is the one after the slots) to indices of shape (slots, entries of each slot).
    """
    source = stacked.view(seen_as(stacked.dtype))
    axes = max(entries, default=-1) + 1
    index: list[torch.Tensor] = [slots.view(-1, *[1] * axes)]
    for axis in range(axes):
        chosen = entries.get(axis)
        if chosen is None:
            chosen = torch.arange(source.shape[axis + 1], device=source.device).expand(len(slots), -1)
        index.append(chosen.view(len(slots), *[1] * axis, -1, *[1] * (axes - axis - 1)))
    return source[tuple(index)].view(stacked.dtype)
