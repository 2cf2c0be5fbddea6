# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "strided_double"
# backend = "triton"
# entry = "strided_double"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "PASSED"
# class = "m15"
# title = "takes both strides as they are"
# ///
"""Any layout of the input is served."""

import torch
import triton
import triton.language as tl


@triton.jit
def double_tile(x, y, rows, cols, row_stride, column_stride, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = place // cols, place % cols
    values = tl.load(x + row * row_stride + col * column_stride, mask=place < rows * cols, other=0.0)
    tl.store(y + place, 2 * values, mask=place < rows * cols)


def strided_double(x, offset, rows, cols, row_stride, column_stride, y):
    if rows * cols:
        source = x[offset:]
        double_tile[(triton.cdiv(rows * cols, 256),)](source, y, rows, cols, row_stride, column_stride, 256)
