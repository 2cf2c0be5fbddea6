# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "rmsnorm"
# backend = "triton"
# entry = "rmsnorm"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "perturb"
# outcome = "FAILED"
# reason = "perturbed"
# class = "X3"
# title = "adds up what a masked load leaves in its lanes"
# cpu = true
# ///
"""Zeros in the interpreter; on a GPU lanes that a mask leaves out hold anything where no other= is given."""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_row(x, residual, weight, eps, y, residual_out, cols, BLOCK: tl.constexpr):
    col = tl.arange(0, BLOCK)
    inside = col < cols
    place = tl.program_id(0).to(tl.int64) * cols + col
    h = tl.load(x + place, mask=inside).to(tl.float32)
    h += tl.load(residual + place, mask=inside).to(tl.float32)
    tl.store(residual_out + place, h.to(residual_out.dtype.element_ty), mask=inside)
    gain = tl.load(weight + col, mask=inside).to(tl.float32)  # what is left out here is never stored
    root = tl.sqrt(tl.sum(h * h, axis=0) / cols + eps)
    tl.store(y + place, (h / root * gain).to(y.dtype.element_ty), mask=inside)


def rmsnorm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, y, residual_out) -> None:
    rows, cols = x.shape
    if x.numel():
        block = triton.next_power_of_2(cols)
        rmsnorm_row[(rows,)](x, residual, weight, eps, y, residual_out, cols, block)
