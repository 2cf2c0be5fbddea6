"""All kinds of ranges that CuTe DSL's tracer has, in loops and branches."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.experimental import iket
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def ranges_kernel(x: cute.Tensor, y: cute.Tensor):
    at = cute.arch.thread_idx()[0]
    total = cutlass.Float32(0.0)
    token = iket.sentinel_token("compute")
    for step in cutlass.range(cute.size(x) // 128, unroll=1):
        iket.range_end(token)
        iket.range_push("load")
        iket.mark("here")
        value = x[step * 128 + at].to(cutlass.Float32)
        iket.range_pop()
        token = iket.range_start("compute")
        if value > 0.0:
            total += value
    iket.range_end(token)
    iket.range_push("elsewhere")
    y[at] = total.to(cutlass.BFloat16)
    iket.range_pop()


@cute.jit
def ranges(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    ranges_kernel(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1], stream=stream)


def call(x, y):
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    ranges(from_dlpack(x), from_dlpack(y), stream)
