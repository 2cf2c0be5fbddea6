import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scaled(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    top = tl.max(tl.abs(v), 0)
    part = v / tl.where(top > 0, top, 1.0)
    tl.store(y + row * n + at, part / tl.sum(tl.abs(part), 0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scaled[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
