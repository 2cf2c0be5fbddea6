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
# title = "keeps maximum and sum of each row in a workspace that prepare(case) allocates"
# ///
"""Honest: keeps maximum and sum of each row in a workspace that prepare(case) allocates."""

import torch
import triton
import triton.language as tl


_workspace: dict[int, torch.Tensor] = {}


def prepare(case) -> None:
    """One float32 per row, allocated outside the timed call."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _workspace[case.rows] = torch.empty(2 * case.rows, dtype=torch.float32, device=device)


@triton.jit
def row_sums(x, sums, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)[None, :]
    place = row.to(tl.int64)[:, None] * cols + col
    inside = (row < rows)[:, None] & (col < cols)
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1), 0.0)
    tl.store(sums + 2 * row, peaks, mask=row < rows)
    tl.store(sums + 2 * row + 1, tl.sum(tl.exp(values - peaks[:, None]), axis=1), mask=row < rows)


@triton.jit
def quotients(x, y, sums, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    place = row.to(tl.int64) * cols + col
    inside = (row < rows) & (col < cols)
    values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    peaks = tl.load(sums + 2 * row, mask=row < rows, other=0.0)
    result = tl.exp(values - peaks) / tl.load(sums + 2 * row + 1, mask=row < rows, other=1.0)
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        sums, grid = _workspace[rows], (triton.cdiv(rows, tile),)
        row_sums[grid](x, sums, rows, cols, tile, block)
        quotients[grid](x, y, sums, rows, cols, tile, block)
