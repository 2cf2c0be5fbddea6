import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def loss(p, t, y, rows, cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < rows * cols
    label = tl.load(t + at // cols, mask=inside, other=0.0)
    margin = 1 - tl.load(p + at, mask=inside, other=0.0) * label
    total = tl.sum(tl.where(inside, tl.maximum(margin, 0.0), 0.0), 0)
    tl.store(y, total / (rows * cols))


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        y = torch.empty((), device=predictions.device, dtype=predictions.dtype)
        rows, cols = predictions.shape
        loss[(1,)](predictions, targets, y, rows, cols, BLOCK=triton.next_power_of_2(rows * cols))
        return y
