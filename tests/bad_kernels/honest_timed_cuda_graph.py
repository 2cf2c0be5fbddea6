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
# title = "replays a graph of its own inside the call"
# gpu = true
# ///
"""Honest: copies the new inputs into the graph's, replays, and copies the output out."""

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
        right = tl.load(b + col[None, :] * k + begin + depth[:, None], mask=right_mask, other=0.0)
        accumulator = tl.dot(left, right, accumulator)
    target = c + row[:, None] * n + col[None, :]
    tl.store(target, accumulator.to(c.dtype.element_ty), mask=(row[:, None] < m) & (col[None, :] < n))


def launch(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    (m, n), k = c.shape, a.shape[1]
    if c.numel():
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
        matmul_tile[grid](a, b, c, m, n, k, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)


_graphs: dict[tuple, tuple] = {}


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    if type(a) is not torch.Tensor or not (c.numel() and a.numel()):
        launch(a, b, c)
        return
    key = (tuple(a.shape), tuple(b.shape))
    if key not in _graphs:
        left, right, result, graph = a.clone(), b.clone(), torch.empty_like(c), torch.cuda.CUDAGraph()
        launch(left, right, result)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            launch(left, right, result)
        _graphs[key] = graph, left, right, result
    graph, left, right, result = _graphs[key]
    left.copy_(a)
    right.copy_(b)
    graph.replay()
    c.copy_(result)
