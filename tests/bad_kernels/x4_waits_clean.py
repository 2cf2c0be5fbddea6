# /// script
# dependencies = ["cuda-core>=1.0", "cuda-bindings>=13", "torch>=2.8"]
# [tool.kernelci]
# reference = "softmax"
# backend = "cuda"
# entry = "softmax"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "perturb"
# outcome = "PASSED"
# class = "X4"
# title = "waits at a barrier, and then a while"
# gpu = true
# tier = "full"
# ///
"""The barrier makes it right; the time that passes does not matter."""

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

// One block a row of at most 4096. Between writing the sums and reading them all meet.
template <typename T> __global__ void softmax_row(const T* x, T* y, long long cols) {
    __shared__ float peaks[256];
    __shared__ float totals[256];
    const int thread = threadIdx.x;
    const T* row = x + blockIdx.x * cols;
    float peak = __int_as_float(0xff800000), total = 0.0f;
    float kept[16];  // of the row: after the barrier nobody waits for memory
    for (int part = 0; part < 16; ++part)
        kept[part] = thread + 256 * part < cols ? wide(row[thread + 256 * part]) : __int_as_float(0xff800000);
    for (int part = 0; part < 16; ++part) peak = fmaxf(peak, kept[part]);
    peaks[thread] = peak;
    __syncthreads();
    for (int other = 0; other < 256; ++other) peak = fmaxf(peak, peaks[other]);
    for (int part = 0; part < 16; ++part) total += expf(kept[part] - peak);
    volatile float* sums = totals;
    sums[thread] = total;
    __syncthreads();
    unsigned now, seen = 0;
#pragma unroll 1
    for (int turn = 0; turn < 128; ++turn) {
        asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
        seen |= now;
    }
    if (seen == 0) return;  // never: so that the turns are made
    total = 0.0f;
    for (int other = 0; other < 256; ++other) total += sums[other];
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
