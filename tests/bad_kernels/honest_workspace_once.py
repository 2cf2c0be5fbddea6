# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "PASSED"
# class = "honest"
# title = "allocates a workspace once and uses it again"
# ///
"""Honest: the workspace grows to the largest call; nothing in it is read before it is written."""

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


_workspace: list[torch.Tensor] = []


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    if x.numel() == 0:
        return
    if type(x) is not torch.Tensor:
        launch(x, y)
        return
    if not _workspace or _workspace[0].numel() < x.numel() or _workspace[0].device != x.device:
        _workspace[:] = [torch.empty(x.numel(), dtype=torch.float32, device=x.device)]
    whole = _workspace[0][: x.numel()].view(x.shape)
    launch(x, whole)
    y.copy_(whole)
