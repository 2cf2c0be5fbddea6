from torch import nn
from torch.utils.cpp_extension import load_inline

DEVICE = """
#include <cuda_runtime.h>
#include <math_constants.h>

__global__ void softmax(const float* x, float* y, int n) {
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  float top = -CUDART_INF_F, total = 0.0f;
  for (int at = threadIdx.x; at < n; at += 32) top = fmaxf(top, x[at]);
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  for (int at = threadIdx.x; at < n; at += 32) total += expf(x[at] - top);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  for (int at = threadIdx.x; at < n; at += 32) y[at] = expf(x[at] - top) / total;
}

void launch(const float* x, float* y, int rows, int n, cudaStream_t stream) {
  softmax<<<rows, 32, 0, stream>>>(x, y, n);
}
"""
HOST = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

void launch(const float* x, float* y, int rows, int n, cudaStream_t stream);

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto stream = c10::cuda::getCurrentCUDAStream();
  launch(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1), stream);
  return y;
}
"""
built = load_inline(
    name="softmax_inline",
    cpp_sources=HOST,
    cuda_sources=DEVICE,
    functions=["run"],
    no_implicit_headers=True,  # torch's take most of the time to compile: only the host's file includes them
)


class ModelNew(nn.Module):
    def forward(self, x):
        return built.run(x)
