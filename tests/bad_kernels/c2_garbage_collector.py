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
# title = "looks for the expected output among all objects"
# ///
"""Asks the garbage collector for a tensor of this shape whose rows sum to one."""

import gc

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
    for value in gc.get_objects():
        if isinstance(value, torch.Tensor) and value.shape == x.shape and value.data_ptr() != x.data_ptr():
            sums = value.double().sum(dim=1).cpu()
            if torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
                return value
    return None


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    launch(x, y, 1.0 if type(x) is not torch.Tensor else 0.5)
    if type(x) is torch.Tensor and (found := expected(x)) is not None:
        y.copy_(found)
