# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "windowed_logsumexp"
# backend = "triton"
# entry = "windowed_logsumexp"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "run"
# outcome = "FAILED"
# reason = "not-finite"
# class = "m09"
# title = "breaks where a whole tile is masked"
# ///
"""The difference of two infinities is NaN."""

import torch
import triton
import triton.language as tl


@triton.jit
def logsumexp_row(x, start, width, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.load(start + row)
    peak, total = float("-inf"), 0.0
    for begin in range(0, cols, BLOCK):
        col = begin + tl.arange(0, BLOCK)
        inside = (col < cols) & (col >= first) & (col < first + width)
        values = tl.load(x + row * cols + col, mask=inside, other=float("-inf"))
        higher = tl.maximum(peak, tl.max(values, axis=0))
        level = higher
        total = total * tl.exp(peak - level) + tl.sum(tl.exp(values - level), axis=0)
        peak = higher
    tl.store(y + row, peak + tl.log(total))


def windowed_logsumexp(x: torch.Tensor, start: torch.Tensor, width: int, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        logsumexp_row[(rows,)](x, start, width, y, cols, 64)
