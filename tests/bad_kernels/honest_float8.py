# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "matmul_float8"
# backend = "triton"
# entry = "matmul"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "dump"
# outcome = "PASSED"
# class = "honest"
# title = "multiplies fp8 as fp8"
# ///
"""The operands are multiplied as they are."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_tile(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One tile of c; m, n and k are multiples of the tile."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for begin in range(0, k, BLOCK_K):
        left = tl.load(a + row[:, None] * k + begin + depth[None, :])
        right = tl.load(b + col[None, :] * k + begin + depth[:, None])
        accumulator = tl.dot(left, right, accumulator)
    tl.store(c + row[:, None] * n + col[None, :], accumulator.to(c.dtype.element_ty))


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    (m, n), k = c.shape, a.shape[1]
    matmul_tile[m // 64, n // 64](a, b, c, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64)
