import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def sums(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    tl.store(y + row * n + at, tl.cumsum(v, 0, reverse=True), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
