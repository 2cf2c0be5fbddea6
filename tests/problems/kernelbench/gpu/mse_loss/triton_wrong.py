import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def loss(p, t, y, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n - BLOCK, BLOCK):
        at = start + tl.arange(0, BLOCK)
        d = tl.load(p + at, mask=at < n, other=0.0) - tl.load(t + at, mask=at < n, other=0.0)
        total += d * d
    tl.store(y, tl.sum(total, 0) / n)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        y = torch.empty((), device=predictions.device, dtype=predictions.dtype)
        loss[(1,)](predictions, targets, y, predictions.numel(), BLOCK=1024)
        return y
