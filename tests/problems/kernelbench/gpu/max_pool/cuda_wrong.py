from torch import nn
from torch.utils.cpp_extension import load_inline

DEVICE = """
#include <cuda_runtime.h>
#include <math_constants.h>

__global__ void pooled(const float* x, float* y, int n, int high, int wide, int up, int out, int size, int step,
                       int pad) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  int plane = at / (up * out), row = at / out % up * step - pad, col = at % out * step - pad;
  float best = 0.0f;
  for (int h = max(row, 0); h < min(row + size, high); ++h)
    for (int w = max(col, 0); w < min(col + size, wide); ++w) best = fmaxf(best, x[(plane * high + h) * wide + w]);
  y[at] = best;
}

void launch(const float* x, float* y, int n, int high, int wide, int up, int out, int size, int step, int pad,
            cudaStream_t stream) {
  pooled<<<(n + 127) / 128, 128, 0, stream>>>(x, y, n, high, wide, up, out, size, step, pad);
}
"""
HOST = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

void launch(const float* x, float* y, int n, int high, int wide, int up, int out, int size, int step, int pad,
            cudaStream_t stream);

torch::Tensor run(torch::Tensor x, int64_t size, int64_t step, int64_t pad) {
  int high = x.size(2), wide = x.size(3);
  int up = (high + 2 * pad - size) / step + 1, out = (wide + 2 * pad - size) / step + 1;
  auto y = torch::empty({x.size(0), x.size(1), up, out}, x.options());
  auto stream = c10::cuda::getCurrentCUDAStream();
  launch(x.data_ptr<float>(), y.data_ptr<float>(), y.numel(), high, wide, up, out, size, step, pad, stream);
  return y;
}
"""
built = load_inline(
    name="max_pool_inline",
    cpp_sources=HOST,
    cuda_sources=DEVICE,
    functions=["run"],
    no_implicit_headers=True,  # torch's take most of the time to compile: only the host's file includes them
)


class ModelNew(nn.Module):
    def __init__(self, size, step, padding):
        super().__init__()
        self.sizes = size, step, padding

    def forward(self, x):
        return built.run(x, *self.sizes)
