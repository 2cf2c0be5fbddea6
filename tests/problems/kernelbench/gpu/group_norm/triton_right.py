import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def normed(x, w, b, y, n, area, features, groups, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    group = tl.program_id(0)
    v = tl.load(x + group * n + at, mask=at < n, other=0.0)
    d = tl.where(at < n, v - tl.sum(v, 0) / n, 0.0)
    scaled = d * tl.rsqrt(tl.sum(d * d, 0) / n + 1e-5)
    feature = group % groups * (features // groups) + at // area
    weight, bias = tl.load(w + feature, mask=at < n), tl.load(b + feature, mask=at < n)
    tl.store(y + group * n + at, scaled * weight + bias, mask=at < n)


class ModelNew(nn.Module):
    def __init__(self, features, groups):
        super().__init__()
        self.groups = groups
        self.gn = nn.GroupNorm(groups, features)

    def forward(self, x):
        y = torch.empty_like(x)
        batch, features, area = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
        n = features // self.groups * area
        block = triton.next_power_of_2(n)
        grid = (batch * self.groups,)
        normed[grid](x, self.gn.weight, self.gn.bias, y, n, area, features, self.groups, BLOCK=block)
        return y
