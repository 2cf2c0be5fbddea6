import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def normed(x, w, b, y, batch, features, area, BLOCK: tl.constexpr):
    n = batch * area
    at = tl.arange(0, BLOCK)
    feature = tl.program_id(0)
    place = at // area * features * area + feature * area + at % area
    v = tl.load(x + place, mask=at < n, other=0.0)
    d = tl.where(at < n, v - tl.sum(v, 0) / n, 0.0)
    scaled = d * tl.rsqrt(tl.sum(d * d, 0) / n + 1e-5)
    tl.store(y + place, scaled * tl.load(w + feature) + tl.load(b + feature), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bn = nn.BatchNorm2d(features)

    def forward(self, x):
        y = torch.empty_like(x)
        batch, features, area = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
        block = triton.next_power_of_2(batch * area)
        normed[(features,)](x, self.bn.weight, self.bn.bias, y, batch, features, area, BLOCK=block)
        return y
