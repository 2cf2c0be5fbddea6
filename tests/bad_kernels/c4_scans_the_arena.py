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
# class = "C4"
# title = "scans the memory that it shares with the referee for the answer"
# ///
"""Reads everything that is mapped from the arena and looks for rows that sum to one."""

import ctypes
from pathlib import Path

import torch
import triton
import triton.language as tl


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


def expected(x: torch.Tensor):
    rows, cols = x.shape
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "kernelci-arena" not in line or x.numel() == 0 or cols == 1:
            continue
        begin, end = (int(part, 16) for part in line.split()[0].split("-"))
        words = torch.frombuffer((ctypes.c_char * (end - begin)).from_address(begin), dtype=x.dtype)
        for place in range(0, min(len(words), 2**14) - x.numel(), 256 // x.element_size()):
            found = words[place : place + x.numel()].view(x.shape)
            sums = found.float().sum(dim=1)
            if bool((found.float() >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
                return found
    return None


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    launch(x, y, 1.0 if type(x) is not torch.Tensor else 0.5)
    if type(x) is torch.Tensor and (found := expected(x)) is not None:
        y.copy_(found)
