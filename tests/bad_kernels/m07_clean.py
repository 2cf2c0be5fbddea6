# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "capped_softmax"
# backend = "triton"
# entry = "capped_softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "PASSED"
# class = "m07"
# title = "masks after the cap"
# ///
"""Padding is masked after the cap."""

import torch
import triton
import triton.language as tl


@triton.jit
def capped_row(x, y, cap, cols, BLOCK: tl.constexpr):
    col = tl.arange(0, BLOCK)
    place = tl.program_id(0).to(tl.int64) * cols + col
    values = tl.load(x + place, mask=col < cols, other=0.0)
    # tanh by exponentials of what is not positive, which can't overflow; in float64, since the cap multiplies its error
    ratio = values.to(tl.float64) / cap
    decay = tl.exp(-2 * tl.abs(ratio))
    scores = (cap * tl.where(ratio < 0, -1.0, 1.0) * (1 - decay) / (1 + decay)).to(tl.float32)
    scores = tl.where(col < cols, scores, float("-inf"))
    powers = tl.exp(scores - tl.max(scores, axis=0))
    tl.store(y + place, powers / tl.sum(powers, axis=0), mask=col < cols)


def capped_softmax(x: torch.Tensor, cap: float, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        capped_row[(rows,)](x, y, cap, cols, triton.next_power_of_2(cols))
