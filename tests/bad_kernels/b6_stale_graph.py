# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax_few"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "FAILED"
# reason = "wrong"
# class = "B6"
# title = "captures a graph on a copy of the first input and replays it"
# gpu = true
# ///
"""The graph reads a copy that nobody refreshes."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_tile(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    result = powers / tl.sum(powers, axis=1)[:, None]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


def launch(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        softmax_tile[(triton.cdiv(rows, tile),)](x, y, rows, cols, tile, block)


_graphs: dict[tuple, tuple[torch.cuda.CUDAGraph, torch.Tensor]] = {}


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    if x.numel() == 0:
        return
    if type(x) is not torch.Tensor:
        launch(x, y)
        return
    key = (tuple(x.shape), x.dtype)
    if key not in _graphs:
        source, target, graph = x.clone(), torch.empty_like(y), torch.cuda.CUDAGraph()
        launch(source, target)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            launch(source, target)
        _graphs[key] = graph, target
    graph, target = _graphs[key]
    graph.replay()
    y.copy_(target)
