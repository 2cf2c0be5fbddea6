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
# class = "B3"
# title = "compares the first columns on the device, and copies the old output"
# ///
"""A memo in GPU memory: the kernel itself compares 64 columns with those of the last call."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_tile(x, y, old_x, old_y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr, SEEN: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside & (col < SEEN), other=0.0)
    before = tl.load(old_x + place, mask=inside & (col < SEEN), other=0.0)
    changed = tl.max(tl.max((values != before).to(tl.int32), axis=1), axis=0)
    if changed > 0:
        fresh = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
        peaks = tl.where(row < rows, tl.max(fresh, axis=1)[:, None], 0.0)
        powers = tl.exp(fresh - peaks)
        result = (powers / tl.sum(powers, axis=1)[:, None]).to(y.dtype.element_ty)
        tl.store(y + place, result, mask=inside)
        tl.store(old_y + place, result, mask=inside)
        tl.store(old_x + place, tl.load(x + place, mask=inside, other=0.0), mask=inside)
    else:
        tl.store(y + place, tl.load(old_y + place, mask=inside, other=0.0), mask=inside)


_memory: dict[tuple, tuple[torch.Tensor, torch.Tensor]] = {}


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel() == 0:
        return
    key = (rows, cols, x.dtype)
    if key not in _memory:
        _memory[key] = torch.full_like(x, float("nan")), torch.empty_like(x)
    block = max(16, triton.next_power_of_2(cols))
    tile = max(1, 1024 // block)
    softmax_tile[(triton.cdiv(rows, tile),)](x, y, *_memory[key], rows, cols, tile, block, 64)
