# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "rmsnorm"
# backend = "triton"
# entry = "rmsnorm"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "PASSED"
# class = "honest"
# title = "returns both outputs as a tuple"
# ///
"""Honest: allocates both outputs and returns them in the declared order."""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_row(x, residual, weight, eps, y, residual_out, cols, BLOCK: tl.constexpr):
    col = tl.arange(0, BLOCK)
    inside = col < cols
    place = tl.program_id(0).to(tl.int64) * cols + col
    h = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual_out + place, h.to(residual_out.dtype.element_ty), mask=inside)
    gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
    root = tl.sqrt(tl.sum(h * h, axis=0) / cols + eps)
    tl.store(y + place, (h / root * gain).to(y.dtype.element_ty), mask=inside)


def rmsnorm(x, residual, weight, eps):
    y, residual_out = torch.empty_like(x), torch.empty_like(x)
    rows, cols = x.shape
    if x.numel():
        block = triton.next_power_of_2(cols)
        rmsnorm_row[(rows,)](x, residual, weight, eps, y, residual_out, cols, block)
    return y, residual_out
