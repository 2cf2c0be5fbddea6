import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def normed(x, w, b, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    d = tl.where(at < n, v - tl.sum(v, 0) / n, 0.0)
    scaled = d * tl.rsqrt(tl.sum(d * d, 0) / n + 1e-5)
    weight, bias = tl.load(w + at, mask=at < n), tl.load(b + at, mask=at < n)
    tl.store(y + row * n + at, scaled * weight + bias, mask=at < n)


class ModelNew(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.ln = nn.LayerNorm(shape)

    def forward(self, x):
        y = torch.empty_like(x)
        n = self.ln.weight.numel()
        normed[(x.numel() // n,)](x, self.ln.weight, self.ln.bias, y, n, BLOCK=triton.next_power_of_2(n))
        return y
