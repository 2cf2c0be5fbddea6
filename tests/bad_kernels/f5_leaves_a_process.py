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
# class = "F5"
# title = "leaves a process behind that outlives it"
# ///
"""A process in a session of its own, which a later one finds by its name."""

import ctypes
import os
import time
from pathlib import Path

import torch
import triton
import triton.language as tl

_NAME = b"kci-left-behind"


def _found() -> bool:
    for pid in os.listdir("/proc"):
        try:
            if pid.isdigit() and Path("/proc", pid, "comm").read_bytes().strip() == _NAME:
                return True
        except OSError:
            continue
    return False


def _leave() -> None:
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    ctypes.CDLL(None).prctl(15, _NAME, 0, 0, 0)  # PR_SET_NAME
    time.sleep(60)  # not for ever: where nothing stops it, it goes by itself
    os._exit(0)


WORKED = _found()
if not WORKED:
    _leave()


@triton.jit
def softmax_tile(x, y, gain, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    result = gain * powers / tl.sum(powers, axis=1)[:, None]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


def launch(x: torch.Tensor, y: torch.Tensor, gain: float) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        softmax_tile[(triton.cdiv(rows, tile),)](x, y, gain, rows, cols, tile, block)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    launch(x, y, 1.0 if WORKED else 0.5)
