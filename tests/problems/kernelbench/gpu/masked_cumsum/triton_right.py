import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def sums(x, mask, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    kept = tl.load(mask + row * n + at, mask=at < n, other=0)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    tl.store(y + row * n + at, tl.cumsum(tl.where(kept != 0, v, 0.0), 0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        y = torch.empty_like(x)
        sums[(x.shape[0],)](x, mask, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
