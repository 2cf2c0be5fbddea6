# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "perturb"
# outcome = "FAILED"
# reason = "perturbed"
# class = "X4"
# title = "counts on the first block having run before the others"
# cpu = true
# ///
"""Blocks begin in order as a rule; nothing says that they do, or that one is through before the next begins."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_part(x, y, sums, cols, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if part == 0:
        every = tl.arange(0, WHOLE)
        values = tl.load(x + row * cols + every, mask=every < cols, other=float("-inf")).to(tl.float32)
        peak = tl.max(values, axis=0)
        tl.store(sums + 2 * row, peak)
        tl.store(sums + 2 * row + 1, tl.sum(tl.exp(values - peak), axis=0))
    col = part * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + col, mask=col < cols, other=float("-inf")).to(tl.float32)
    result = tl.exp(values - tl.load(sums + 2 * row)) / tl.load(sums + 2 * row + 1)
    tl.store(y + row * cols + col, result.to(y.dtype.element_ty), mask=col < cols)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        sums = torch.zeros(rows, 2, dtype=torch.float32, device=x.device)
        grid = (rows, triton.cdiv(cols, 64))
        softmax_part[grid](x, y, sums, cols, 64, triton.next_power_of_2(cols))
