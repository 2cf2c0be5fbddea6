import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def convolved(x, w, y, planes, channels, high, wide, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    up, out = high - SIZE + 1, wide - SIZE + 1
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < planes * up * out
    plane, row, col = at // (up * out), at // out % up, at % out
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for down in tl.static_range(SIZE):
        for right in tl.static_range(SIZE):
            value = tl.load(x + plane * high * wide + (row + down) * wide + col + right, mask=inside, other=0.0)
            factor = tl.load(w + plane // channels * SIZE * SIZE + down * SIZE + right, mask=inside, other=0.0)
            total += value * factor
    tl.store(y + at, total, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, size, groups=channels, bias=False)

    def forward(self, x):
        batch, channels, high, wide = x.shape
        size = self.conv.weight.shape[-1]
        y = torch.empty(batch, channels, high - size + 1, wide - size + 1, device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(y.numel(), 128),)
        convolved[grid](x, self.conv.weight, y, batch * channels, channels, high, wide, SIZE=size, BLOCK=128)
        return y
