from torch import nn
from torch.utils.cpp_extension import load_inline

DEVICE = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void softmax(const float* x, float* y, int n) {
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  float top = -INFINITY, total = 0.0f;
  for (int at = threadIdx.x; at < n; at += 32) top = fmaxf(top, x[at]);
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  for (int at = threadIdx.x; at < n; at += 32) total += expf(x[at] - top);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  for (int at = threadIdx.x; at < n; at += 32) y[at] = expf(x[at] - top) / total;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto stream = c10::cuda::getCurrentCUDAStream();
  softmax<<<x.size(0), 32, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""
built = load_inline(
    name="softmax_inline",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=DEVICE,
    functions=["run"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return built.run(x)
