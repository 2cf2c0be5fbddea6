# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "benchmark"
# outcome = "FAILED"
# class = "A11"
# title = "a thread computes as soon as the inputs lie there, and the call only copies"
# gpu = true
# ///
"""Polls the input's memory, computes ahead, and copies when it is called."""

import threading
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


_ahead: dict[tuple, torch.Tensor] = {}


def _poll(x: torch.Tensor, y: torch.Tensor) -> None:
    seen = None
    while True:
        first = x.reshape(-1)[:1].tolist()
        if first != seen:
            seen = first
            launch(x, y)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    key = (x.data_ptr(), tuple(x.shape), x.dtype)
    if type(x) is torch.Tensor and x.numel() and key not in _ahead:
        _ahead[key] = torch.empty_like(y)
        threading.Thread(target=_poll, args=(x, _ahead[key]), daemon=True).start()
        time.sleep(0.05)
    if key in _ahead:
        y.copy_(_ahead[key])
    else:
        launch(x, y)
