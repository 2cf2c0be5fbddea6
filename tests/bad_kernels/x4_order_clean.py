# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "perturb"
# outcome = "PASSED"
# class = "X4"
# title = "launches what others need before them"
# cpu = true
# ///
"""The second launch begins when the first is through, whatever the order of their blocks."""

import torch
import triton
import triton.language as tl


@triton.jit
def sums_of_row(x, sums, cols, WHOLE: tl.constexpr):
    """The largest value of a row, and the sum of its powers."""
    row, col = tl.program_id(0).to(tl.int64), tl.arange(0, WHOLE)
    values = tl.load(x + row * cols + col, mask=col < cols, other=float("-inf")).to(tl.float32)
    peak = tl.max(values, axis=0)
    tl.store(sums + 2 * row, peak)
    tl.store(sums + 2 * row + 1, tl.sum(tl.exp(values - peak), axis=0))


@triton.jit
def softmax_part(x, y, sums, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + col, mask=col < cols, other=float("-inf")).to(tl.float32)
    result = tl.exp(values - tl.load(sums + 2 * row)) / tl.load(sums + 2 * row + 1)
    tl.store(y + row * cols + col, result.to(y.dtype.element_ty), mask=col < cols)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        sums = torch.empty(rows, 2, dtype=torch.float32, device=x.device)
        sums_of_row[(rows,)](x, sums, cols, triton.next_power_of_2(cols))
        softmax_part[(rows, triton.cdiv(cols, 64))](x, y, sums, cols, 64)
