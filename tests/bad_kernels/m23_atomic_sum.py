# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "repeatable_sum"
# backend = "triton"
# entry = "repeatable_sum"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "FAILED"
# reason = "not-repeatable"
# class = "m23"
# title = "adds its parts by atomics, where the same bits are promised"
# gpu = true
# ///
"""The order of the additions changes from run to run."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_part(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + col, mask=col < cols, other=0.0)
    tl.atomic_add(y + row, tl.sum(values, axis=0))


def repeatable_sum(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    y.zero_()
    if x.numel():
        add_part[(rows, triton.cdiv(cols, 256))](x, y, cols, 256)
