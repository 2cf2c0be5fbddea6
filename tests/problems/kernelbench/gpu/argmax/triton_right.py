import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def largest(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    tl.store(y + row, tl.argmax(v, 0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=torch.int64)
        largest[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
