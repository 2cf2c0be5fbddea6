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
# luck = true
# class = "D7"
# title = "divides before the other blocks have added their parts"
# gpu = true
# ///
"""A row is split over several blocks, and none waits for the others."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, scratch, cols, BLOCK: tl.constexpr):
    row, part, parts = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    col = part * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + col, mask=col < cols, other=float("-inf")).to(tl.float32)
    powers = tl.where(col < cols, tl.exp(values - 8.0), 0.0)
    tl.atomic_add(scratch + row, tl.sum(powers, axis=0))
    # Nothing makes this program wait until the others have added theirs.
    result = powers / tl.load(scratch + row, volatile=True)
    tl.store(y + row * cols + col, result.to(y.dtype.element_ty), mask=col < cols)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        scratch = torch.zeros(rows, dtype=torch.float32, device=x.device)
        softmax_row[(rows, triton.cdiv(cols, 256))](x, y, scratch, cols, 256)
