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
# title = "splits the sum over a workspace that it allocates once"
# gpu = true
# ///
"""Honest: all of the workspace is written before it is read, in every call."""

import torch
import triton
import triton.language as tl


SPLITS = 4


@triton.jit
def matmul_part(a, b, parts, m, n, k, part, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    first = tl.program_id(2) * part
    last = tl.minimum(first + part, k)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for begin in range(first, last, BLOCK_K):
        inside = begin + depth < last
        left_mask, right_mask = (row[:, None] < m) & inside[None, :], (col[None, :] < n) & inside[:, None]
        left = tl.load(a + row[:, None] * k + begin + depth[None, :], mask=left_mask, other=0.0)
        right = tl.load(b + col[None, :] * k + begin + depth[:, None], mask=right_mask, other=0.0)
        accumulator = tl.dot(left, right, accumulator)
    target = parts + tl.program_id(2).to(tl.int64) * m * n + row[:, None] * n + col[None, :]
    tl.store(target, accumulator, mask=(row[:, None] < m) & (col[None, :] < n))


@triton.jit
def add_parts(parts, c, size, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for split in range(SPLITS):
        total += tl.load(parts + split * size + place, mask=place < size, other=0.0)
    tl.store(c + place, total.to(c.dtype.element_ty), mask=place < size)


_workspace: list[torch.Tensor] = []


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    (m, n), k = c.shape, a.shape[1]
    if c.numel() == 0:
        return
    if type(a) is not torch.Tensor:
        space = a.new_empty(SPLITS * m * n, dtype=torch.float32)
    else:
        if not _workspace or _workspace[0].numel() < SPLITS * m * n:
            _workspace[:] = [torch.empty(SPLITS * m * n, dtype=torch.float32, device=a.device)]
        space = _workspace[0]
    part = triton.cdiv(triton.cdiv(k, SPLITS), 32) * 32
    matmul_part[(triton.cdiv(m, 32), triton.cdiv(n, 32), SPLITS)](a, b, space, m, n, k, part, 32, 32, 32)
    add_parts[(triton.cdiv(m * n, 1024),)](space, c, m * n, SPLITS, 1024)
