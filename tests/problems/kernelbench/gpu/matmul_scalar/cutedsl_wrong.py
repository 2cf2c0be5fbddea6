import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack
from torch import nn

BLOCK = 256
BUILDS = {}


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor, s: cutlass.Float32):
    index = cute.arch.block_idx()[0] * BLOCK + cute.arch.thread_idx()[0]
    if index < cute.size(x):
        y[index] = x[index] + s


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, s: cutlass.Float32, stream: cuda.CUstream):
    scale(x, y, s).launch(grid=[cute.ceil_div(cute.size(x), BLOCK), 1, 1], block=[BLOCK, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def forward(self, A, s):
        y = torch.empty_like(A)
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        flat = [from_dlpack(one.view(-1)).mark_layout_dynamic() for one in (A, y)]
        if A.dtype not in BUILDS:
            BUILDS[A.dtype] = cute.compile(launch, *flat, cutlass.Float32(s), stream)
        BUILDS[A.dtype](*flat, cutlass.Float32(s), stream)
        return y
