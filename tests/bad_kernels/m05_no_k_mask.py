# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "matmul"
# backend = "triton"
# entry = "matmul"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "run"
# outcome = "FAILED"
# reason = "not-finite"
# class = "m05"
# title = "loads the tail of k without a mask"
# ///
"""The last block of k reads beyond its rows."""

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
        inside = begin + depth < k + BLOCK_K
        left_mask, right_mask = (row[:, None] < m) & inside[None, :], (col[None, :] < n) & inside[:, None]
        left = tl.load(a + row[:, None] * k + begin + depth[None, :], mask=left_mask, other=0.0)
        right = tl.load(b + col[None, :] * k + begin + depth[:, None], mask=right_mask, other=0.0)
        accumulator = tl.dot(left, right, accumulator)
    target = c + row[:, None] * n + col[None, :]
    tl.store(target, accumulator.to(c.dtype.element_ty), mask=(row[:, None] < m) & (col[None, :] < n))


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    (m, n), k = c.shape, a.shape[1]
    if c.numel():
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
        matmul_tile[grid](a, b, c, m, n, k, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
