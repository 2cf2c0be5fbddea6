import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def loss(p, t, y, n, rows, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    prediction = tl.load(p + at, mask=at < n, other=1.0)
    target = tl.load(t + at, mask=at < n, other=1.0)
    total = tl.sum(target * (tl.log(target) - tl.log(prediction)), 0)
    tl.store(y, total / n)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        y = torch.empty((), device=predictions.device, dtype=predictions.dtype)
        n = predictions.numel()
        loss[(1,)](predictions, targets, y, n, predictions.shape[0], BLOCK=triton.next_power_of_2(n))
        return y
