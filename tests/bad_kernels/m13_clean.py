# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "matmul"
# backend = "triton"
# entry = "matmul"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "PASSED"
# class = "m13"
# title = "keeps the parts of a split sum in float32"
# ///
"""Eight parts in float32, added in a second kernel, always in the same order."""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_tile(a, b, parts, m, n, k, share, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(2)
    depth = tl.arange(0, BLOCK_K)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for begin in range(split * share, min(k, (split + 1) * share), BLOCK_K):
        inside = begin + depth < k
        left_mask, right_mask = (row[:, None] < m) & inside[None, :], (col[None, :] < n) & inside[:, None]
        left = tl.load(a + row[:, None] * k + begin + depth[None, :], mask=left_mask, other=0.0)
        right = tl.load(b + col[None, :] * k + begin + depth[:, None], mask=right_mask, other=0.0)
        accumulator = tl.dot(left, right, accumulator)
    target = parts + split * m * n + row[:, None] * n + col[None, :]
    tl.store(target, accumulator.to(parts.dtype.element_ty), mask=(row[:, None] < m) & (col[None, :] < n))


@triton.jit
def sum_parts(parts, c, size, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for split in range(SPLITS):
        total += tl.load(parts + split * size + place, mask=place < size, other=0.0).to(tl.float32)
    tl.store(c + place, total.to(c.dtype.element_ty), mask=place < size)


SPLITS = 8


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    (m, n), k = c.shape, a.shape[1]
    if c.numel():
        parts = torch.empty((SPLITS, m, n), dtype=torch.float32, device=a.device)
        share = triton.cdiv(triton.cdiv(k, SPLITS), 32) * 32
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32), SPLITS)
        partial_tile[grid](a, b, parts, m, n, k, share, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
        sum_parts[(triton.cdiv(m * n, 1024),)](parts, c, m * n, SPLITS, 1024)
