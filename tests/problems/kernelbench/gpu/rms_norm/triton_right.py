import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def normed(x, y, features, inner, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    batch, place = tl.program_id(0) // inner, tl.program_id(0) % inner
    where = batch * features * inner + at * inner + place
    v = tl.load(x + where, mask=at < features, other=0.0)
    tl.store(y + where, v * tl.rsqrt(tl.sum(v * v, 0) / features + eps), mask=at < features)


class ModelNew(nn.Module):
    def __init__(self, features, eps: float = 1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        batch, features, inner = x.shape
        block = triton.next_power_of_2(features)
        normed[(batch * inner,)](x, y, features, inner, self.eps, BLOCK=block)
        return y
