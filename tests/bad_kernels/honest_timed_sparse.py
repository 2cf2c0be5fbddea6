# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "matmul_timed"
# backend = "triton"
# entry = "matmul"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "benchmark"
# outcome = "PASSED"
# class = "honest"
# title = "leaves out blocks of zeros, of which timed values have none"
# gpu = true
# ///
"""Honest: a block of a that holds only zeros adds nothing, so it is not multiplied."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_tile(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for begin in range(0, k, BLOCK_K):
        inside = begin + depth < k
        left_mask, right_mask = (row[:, None] < m) & inside[None, :], (col[None, :] < n) & inside[:, None]
        left = tl.load(a + row[:, None] * k + begin + depth[None, :], mask=left_mask, other=0.0)
        if tl.max(tl.max(tl.abs(left), axis=1), axis=0) > 0:
            right = tl.load(b + col[None, :] * k + begin + depth[:, None], mask=right_mask, other=0.0)
            accumulator = tl.dot(left, right, accumulator)
    target = c + row[:, None] * n + col[None, :]
    tl.store(target, accumulator.to(c.dtype.element_ty), mask=(row[:, None] < m) & (col[None, :] < n))


def launch(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    (m, n), k = c.shape, a.shape[1]
    if c.numel():
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
        matmul_tile[grid](a, b, c, m, n, k, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    launch(a, b, c)
