# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "far_copy"
# backend = "triton"
# entry = "far_copy"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "FAILED"
# class = "m01"
# title = "its row offset is computed in 32 bits"
# gpu = true
# tier = "full"
# ///
"""The product of row and stride wraps beyond 2^31 elements."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_row(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for begin in range(0, cols, BLOCK):
        col = begin + tl.arange(0, BLOCK)
        place = row * cols + col
        tl.store(y + place, tl.load(x + place, mask=col < cols, other=0), mask=col < cols)


def far_copy(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        copy_row[(rows,)](x, y, cols, 4096)
