import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scaled(a, b, c, rows, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < rows * cols
    factor = tl.load(a + at // cols, mask=inside, other=0.0)
    tl.store(c + at, factor * tl.load(b + at, mask=inside, other=0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, A, B):
        C = torch.empty_like(B)
        rows, cols = B.shape
        scaled[(triton.cdiv(rows * cols, 128),)](A, B, C, rows, cols, BLOCK=128)
        return C
