"""Tensors of many slots: copied in words where they are of whole words, and looked at in a few entries."""

import pytest
import torch

from kernelci.workbench import pieces
from kernelci.workbench.pieces import gathered
from kernelci.workbench.pools import Pool


@pytest.mark.parametrize(
    ("dtype", "shape", "step", "begin", "words"),
    [
        (torch.bfloat16, (3, 8), 64, 0, True),
        (torch.bfloat16, (3, 8), 64, 1, False),  # begins within a word
        (torch.bfloat16, (3, 7), 64, 0, False),  # ends within one
        (torch.bfloat16, (3, 8), 61, 0, False),  # the second one begins within one
        (torch.float8_e5m2, (8,), 8, 8, True),
        (torch.float32, (), 2, 0, False),
        (torch.int64, (3,), 3, 0, False),  # is words already
    ],
)
def test_what_lies_in_whole_words(
    dtype: torch.dtype, shape: tuple[int, ...], step: int, begin: int, words: bool
) -> None:
    values = torch.arange(400).to(torch.uint8).repeat(8).view(dtype)
    source = Pool(values[begin:], shape, step).stacked(3)
    size = torch.Size(shape).numel()
    target = torch.zeros(3 * size, dtype=dtype).view(3, *shape)
    pieces.copy(target, source)
    same = torch.equal(target.contiguous().view(-1).view(torch.uint8), source.contiguous().view(-1).view(torch.uint8))
    pieces_of = source.view(3, size).view(pieces.seen_as(dtype))
    assert (True, words) == (same, pieces.has_words(pieces_of))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e5m2])
def test_gathered_along_two_axes(dtype: torch.dtype) -> None:
    stacked = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).remainder(8).to(dtype)
    rows, columns = torch.tensor([[2, 0], [1, 1]]), torch.tensor([[3], [0]])
    found = gathered(stacked, torch.tensor([0, 1]), {0: rows, 1: columns})
    expected = torch.stack([stacked.float()[slot][rows[slot]][:, columns[slot]] for slot in range(2)])
    assert torch.equal(expected, found.float())


def test_gathered_along_the_second_axis_alone() -> None:
    stacked = torch.arange(2 * 3 * 4).reshape(2, 3, 4)
    found = gathered(stacked, torch.tensor([1]), {1: torch.tensor([[3, 0]])})
    assert stacked[1:][:, :, [3, 0]].tolist() == found.tolist()
