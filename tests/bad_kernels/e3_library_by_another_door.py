# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "matmul_timed"
# backend = "triton"
# entry = "matmul"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "benchmark"
# outcome = "FAILED"
# reason = "library-call"
# class = "E3"
# title = "calls cuBLAS through another name"
# gpu = true
# ///
"""A kernel writes one element; addmm writes everything."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_tile(a, b, c, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(c + place, (tl.load(a + place) * tl.load(b + place)).to(c.dtype.element_ty), mask=place < 1)


def launch(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    if c.numel():
        matmul_tile[(1,)](a, b, c, BLOCK=1)


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    launch(a, b, c)
    if c.numel():
        torch.addmm(c, a, b.T, beta=0, out=c)
