# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "relu_in_place"
# backend = "triton"
# entry = "relu"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "FAILED"
# reason = "out-of-bounds"
# class = "D8"
# title = "takes what lies between the rows for its own"
# ///
"""Rows of whole pitches are as good as one long row, as long as nobody else has what lies between them."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_tile(x, size, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + place, mask=place < size)
    tl.store(x + place, tl.where(values > 0, values, 0.0), mask=place < size)


def relu(x: torch.Tensor) -> None:
    size = (x.shape[0] - 1) * x.stride(0) + x.shape[1]
    relu_tile[(triton.cdiv(size, 256),)](x, size, 256)
