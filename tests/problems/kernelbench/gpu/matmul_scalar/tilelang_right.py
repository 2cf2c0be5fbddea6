import tilelang
import tilelang.language as T
import torch
from torch import nn

BLOCK = 1024


@tilelang.jit
def scaled():
    size = T.dynamic("size")

    @T.prim_func
    def scale(x: T.Tensor((size,), "float32"), y: T.Tensor((size,), "float32"), s: T.float32):
        with T.Kernel(T.ceildiv(size, BLOCK), threads=128) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < size:
                    y[block * BLOCK + i] = x[block * BLOCK + i] * s

    return scale


class ModelNew(nn.Module):
    def forward(self, A, s):
        y = torch.empty_like(A)
        scaled()(A.view(-1), y.view(-1), s)
        return y
