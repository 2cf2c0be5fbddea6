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
# class = "honest"
# title = "computes in stages in its own output"
# ///
"""Honest: a first kernel writes exponentials to the output, a second divides them there."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_tile(x, y, sums, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    tl.store(sums + row, tl.sum(powers, axis=1)[:, None], mask=row < rows)
    tl.store(y + place, powers, mask=inside)


@triton.jit
def divide(y, sums, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    powers = tl.load(y + place, mask=inside, other=0.0)
    tl.store(y + place, powers / tl.load(sums + row, mask=row < rows, other=1.0), mask=inside)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel() == 0:
        return
    block = max(16, triton.next_power_of_2(cols))
    tile = max(1, 1024 // block)
    grid = (triton.cdiv(rows, tile),)
    # A 16-bit output would round the exponentials, so they are kept in float32.
    powers = y if y.dtype == torch.float32 else torch.empty_like(x, dtype=torch.float32)
    sums = torch.empty(rows, dtype=torch.float32, device=x.device)
    softmax_tile[grid](x, powers, sums, rows, cols, tile, block)
    divide[grid](powers, sums, rows, cols, tile, block)
    if powers is not y:
        y.copy_(powers)
