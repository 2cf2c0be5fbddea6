# /// script
# dependencies = ["cuda-core>=1.0", "cuda-bindings>=13", "torch>=2.8"]
# [tool.kernelci]
# reference = "softmax"
# backend = "cuda"
# entry = "softmax"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "sanitize"
# outcome = "FAILED"
# class = "m25"
# title = "uses shared memory again without a barrier"
# gpu = true
# luck = true
# ///
"""Some warps write sums where others still read maxima."""

from collections.abc import Iterator
from functools import lru_cache

import torch
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, Stream, launch

THREADS = 256
TYPES = {torch.float32: "float", torch.float16: "unsigned short"}
SOURCE = r"""
__device__ float wide(float x) { return x; }
__device__ float wide(unsigned short x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
__device__ void store(float* y, float x) { *y = x; }
__device__ void store(unsigned short* y, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(*y) : "f"(x)); }

__device__ float most(float x) {
    for (int apart = 16; apart; apart /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, apart));
    return x;
}
__device__ float sum(float x) {
    for (int apart = 16; apart; apart /= 2) x += __shfl_xor_sync(0xffffffff, x, apart);
    return x;
}

// One block a row. The same shared words, one a warp, serve for the maximum and then for the sum.
template <typename T> __global__ void softmax_row(const T* x, T* y, long long cols) {
    __shared__ float shared[8];
    const int thread = threadIdx.x, warp = thread / 32;
    const T* row = x + blockIdx.x * cols;
    float peak = __int_as_float(0xff800000);
    for (long long col = thread; col < cols; col += 256) peak = fmaxf(peak, wide(row[col]));
    peak = most(peak);
    if (thread % 32 == 0) shared[warp] = peak;
    __syncthreads();
    for (int other = 0; other < 8; ++other) peak = fmaxf(peak, shared[other]);
    float total = 0.0f;
    for (long long col = thread; col < cols; col += 256) total += expf(wide(row[col]) - peak);
    total = sum(total);
    if (thread % 32 == 0) shared[warp] = total;
    __syncthreads();
    total = 0.0f;
    for (int other = 0; other < 8; ++other) total += shared[other];
    for (long long col = thread; col < cols; col += 256)
        store(y + blockIdx.x * cols + col, expf(wide(row[col]) - peak) / total);
}
"""


@lru_cache
def build(arch: str, dtype: torch.dtype) -> ObjectCode:
    """Compile for `arch` ("sm_90a"); needs no GPU."""
    options = ProgramOptions(arch=arch, std="c++17", lineinfo=True)
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(f"softmax_row<{TYPES[dtype]}>",))


def compile(case, target: str) -> Iterator[ObjectCode]:
    """Yield what `softmax` launches for this case."""
    yield build(target, case.dtype)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel() == 0:
        return
    device = x.device.index or 0
    Device(device).set_current()
    major, minor = torch.cuda.get_device_capability(device)
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    kernel = build(arch, x.dtype).get_kernel(f"softmax_row<{TYPES[x.dtype]}>")
    stream = Stream.from_handle(torch.cuda.current_stream(device).cuda_stream)
    launch(stream, LaunchConfig(grid=rows, block=THREADS), kernel, x.data_ptr(), y.data_ptr(), cols)
