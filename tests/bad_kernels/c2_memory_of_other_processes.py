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
# class = "C2"
# title = "reads the memory of the process that judges it"
# ///
"""Any process of the same user whose memory can be read may hold seeds and expected values."""

import os

import torch
import triton
import triton.language as tl

def _readable(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(int(maps.readline().split("-")[0], 16))
            return len(memory.read(8)) == 8
    except (OSError, ValueError):
        return False


WORKED = any(_readable(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid())


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
