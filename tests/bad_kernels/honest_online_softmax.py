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
# title = "reads each row in pieces with a running maximum"
# ///
"""Honest: the sum is corrected whenever the maximum rises."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    peak, total = float("-inf"), 0.0
    for begin in range(0, cols, BLOCK):
        col = begin + tl.arange(0, BLOCK)
        values = tl.load(x + start + col, mask=col < cols, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(peak, tl.max(values, axis=0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(values - higher), axis=0)
        peak = higher
    for begin in range(0, cols, BLOCK):
        col = begin + tl.arange(0, BLOCK)
        values = tl.load(x + start + col, mask=col < cols, other=float("-inf")).to(tl.float32)
        tl.store(y + start + col, (tl.exp(values - peak) / total).to(y.dtype.element_ty), mask=col < cols)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        softmax_row[(rows,)](x, y, cols, 256)
