import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def loss(x, target, y, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)[None, :]
    inside = (row < rows) & (col < cols)
    v = tl.load(x + row * cols + col, mask=inside, other=-float("inf"))
    peak = tl.where(row < rows, tl.max(v, 1)[:, None], 0.0)
    spread = tl.log(tl.where(row < rows, tl.sum(tl.exp(v - peak), 1)[:, None], 1.0))
    chosen = tl.load(target + row, mask=row < rows, other=0)
    picked = tl.where(inside & (col == chosen), v - spread, 0.0)
    tl.store(y, -tl.sum(tl.sum(picked, 1), 0) / rows)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        y = torch.empty((), device=predictions.device, dtype=predictions.dtype)
        rows, cols = predictions.shape
        blocks = {"ROWS": triton.next_power_of_2(rows), "COLS": triton.next_power_of_2(cols)}
        loss[(1,)](predictions, targets, y, rows, cols, **blocks)
        return y
