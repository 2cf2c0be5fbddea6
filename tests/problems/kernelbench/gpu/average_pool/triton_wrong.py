import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def pooled(x, y, rows, wide, out, SIZE: tl.constexpr, STEP: tl.constexpr, PAD: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < rows * out
    row, col = at // out, at % out
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in tl.static_range(SIZE):
        place = col * STEP + step
        total += tl.load(x + row * wide + place, mask=inside & (place >= 0) & (place < wide), other=0.0)
    tl.store(y + at, total / SIZE, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size, step, padding):
        super().__init__()
        self.size, self.step, self.padding = size, step, padding

    def forward(self, x):
        batch, channels, wide = x.shape
        out = (wide + 2 * self.padding - self.size) // self.step + 1
        y = torch.empty(batch, channels, out, device=x.device, dtype=x.dtype)
        sizes = {"SIZE": self.size, "STEP": self.step, "PAD": self.padding, "BLOCK": 64}
        pooled[(triton.cdiv(y.numel(), 64),)](x, y, batch * channels, wide, out, **sizes)
        return y
