# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax_timed"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "benchmark"
# outcome = "INVALID"
# reason = "short-windows"
# class = "A10"
# title = "slows the short one of two windows, so that their difference shrinks"
# gpu = true
# ///
"""Graphs of fewer calls than the longest sleep before they are replayed, after the clock has started."""

import time

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


def _is_captured(x: torch.Tensor) -> bool:
    return type(x) is torch.Tensor and torch.cuda.is_current_stream_capturing()


_calls = 0
_of: dict[int, int] = {}  # calls in each graph
_end, _replay = torch.cuda.CUDAGraph.capture_end, torch.cuda.CUDAGraph.replay


def _count(self) -> None:
    global _calls
    _of[id(self)], _calls = _calls, 0
    _end(self)


def _sleep_in_short_ones(self) -> None:
    if _of.get(id(self), 0) < max(_of.values(), default=0):
        time.sleep(0.004)
    _replay(self)


torch.cuda.CUDAGraph.capture_end, torch.cuda.CUDAGraph.replay = _count, _sleep_in_short_ones


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    global _calls
    _calls += _is_captured(x)
    launch(x, y)
