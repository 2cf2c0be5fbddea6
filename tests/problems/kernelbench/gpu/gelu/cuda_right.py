from torch import nn
from torch.utils.cpp_extension import load_inline

DEVICE = """
#include <cuda_runtime.h>

__global__ void gelu(const float* x, float* y, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) y[at] = 0.5f * x[at] * (1.0f + erff(x[at] * 0.70710678f));
}

void launch(const float* x, float* y, int n, cudaStream_t stream) {
  gelu<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}
"""
HOST = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

void launch(const float* x, float* y, int n, cudaStream_t stream);

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  launch(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), c10::cuda::getCurrentCUDAStream());
  return y;
}
"""
built = load_inline(
    name="gelu_inline",
    cpp_sources=HOST,
    cuda_sources=DEVICE,
    functions=["run"],
    no_implicit_headers=True,  # torch's take most of the time to compile: only the host's file includes them
)


class ModelNew(nn.Module):
    def forward(self, x):
        return built.run(x)
