# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "strided_double"
# backend = "triton"
# entry = "strided_double"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "run"
# outcome = "FAILED"
# reason = "gpu-fault"
# class = "m17"
# title = "promises an alignment that a view does not have"
# gpu = true
# ///
"""Tells the compiler that every address is a multiple of 16 bytes, after which it loads vectors."""

import torch
import triton
import triton.language as tl


@triton.jit
def double_tile(x, y, offset, rows, cols, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + tl.max_contiguous(tl.multiple_of(offset + place, 4), 4), mask=place < rows * cols, other=0.0)
    tl.store(y + place, 2 * values, mask=place < rows * cols)


def strided_double(x, offset, rows, cols, row_stride, column_stride, y):
    if rows * cols and column_stride == 1 and row_stride == cols:
        double_tile[(triton.cdiv(rows * cols, 256),)](x, y, offset, rows, cols, 256)
    elif rows * cols:
        y.copy_(2 * x.as_strided((rows, cols), (row_stride, column_stride), offset))
