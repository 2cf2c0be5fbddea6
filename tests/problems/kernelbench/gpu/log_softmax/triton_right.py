import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    v = v - tl.max(v, 0)
    tl.store(y + row * n + at, v - tl.log(tl.sum(tl.exp(v), 0)), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self, dim: int = 1):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
