# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "perturb"
# outcome = "PASSED"
# class = "X4"
# title = "reads the number of threads, and needs none"
# gpu = true
# tier = "full"
# ///
"""Whatever the number, it is divided by itself."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, cols, BLOCK: tl.constexpr):
    row, col = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + col, mask=col < cols, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    threads = tl.inline_asm_elementwise("mov.u32 $0, %ntid.x; //$1", "=r,r", [col], tl.int32, is_pure=True, pack=1)
    result = powers / tl.sum(powers, axis=0) * (threads / threads)
    tl.store(y + row * cols + col, result.to(y.dtype.element_ty), mask=col < cols)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        softmax_row[(rows,)](x, y, cols, triton.next_power_of_2(cols), num_warps=4)
