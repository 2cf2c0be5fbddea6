# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "PASSED"
# class = "m37"
# title = "keeps its launch plan by shape, and no result"
# ///
"""What is kept for a shape is the tile, never a value."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_tile(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    result = powers / tl.sum(powers, axis=1)[:, None]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


_plans: dict[tuple[int, ...], tuple[int, int]] = {}


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel() == 0:
        return
    if (rows, cols) not in _plans:
        block = max(16, triton.next_power_of_2(cols))
        _plans[rows, cols] = max(1, 1024 // block), block
    tile, block = _plans[rows, cols]
    softmax_tile[(triton.cdiv(rows, tile),)](x, y, rows, cols, tile, block)
