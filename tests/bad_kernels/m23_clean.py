# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "repeatable_sum"
# backend = "triton"
# entry = "repeatable_sum"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "PASSED"
# class = "m23"
# title = "adds its parts in one order"
# ///
"""One program a row, one order of additions."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_row(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, cols, BLOCK):
        col = begin + tl.arange(0, BLOCK)
        total += tl.load(x + row * cols + col, mask=col < cols, other=0.0)
    tl.store(y + row, tl.sum(total, axis=0))


def repeatable_sum(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        sum_row[(rows,)](x, y, cols, 1024)
