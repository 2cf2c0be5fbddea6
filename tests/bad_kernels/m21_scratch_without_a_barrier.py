# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "FAILED"
# class = "m21"
# title = "reads scratch that other warps write, without a barrier"
# gpu = true
# luck = true
# ///
"""Global scratch is written and read in one block with nothing between."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, scratch, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + col, mask=col < cols, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(scratch + row * BLOCK + col, powers)
    # Each thread reads what another warp wrote: the columns in reverse.
    reversed_powers = tl.load(scratch + row * BLOCK + BLOCK - 1 - col)
    result = reversed_powers / tl.sum(powers, axis=0)
    target = BLOCK - 1 - col
    tl.store(y + row * cols + target, result.to(y.dtype.element_ty), mask=target < cols)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(256, triton.next_power_of_2(cols))
        scratch = torch.empty((rows, block), dtype=torch.float32, device=x.device)
        softmax_row[(rows,)](x, y, scratch, cols, block, num_warps=8)
