# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "FAILED"
# reason = "wrong"
# class = "m27"
# title = "adds to its output, and a tuner runs it several times"
# ///
"""The first call of a shape leaves the sum of all trials."""

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
    before = tl.load(y + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + place, (before + result).to(y.dtype.element_ty), mask=inside)


CONFIGS = (1, 4)


def launch(tile: int, x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        softmax_tile[(triton.cdiv(rows, tile),)](x, y, rows, cols, tile, block)


_best: dict[tuple, int] = {}


def _seconds(config: int, x: torch.Tensor, y: torch.Tensor) -> float:
    began = time.perf_counter()
    launch(config, x, y)
    return time.perf_counter() - began


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    y.zero_()
    key = (tuple(x.shape), x.dtype)
    if key not in _best:
        _best[key] = min(CONFIGS, key=lambda config: _seconds(config, x, y))
    launch(_best[key], x, y)
