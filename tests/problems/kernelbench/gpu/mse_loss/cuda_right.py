from torch import nn
from torch.utils.cpp_extension import load_inline

DEVICE = """
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void loss(const float* p, const float* t, float* y, int n) {
  __shared__ float part[THREADS];
  float total = 0.0f;
  for (int at = threadIdx.x; at < n; at += THREADS) total += (p[at] - t[at]) * (p[at] - t[at]);
  part[threadIdx.x] = total;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *y = part[0] / n;
}

void launch(const float* p, const float* t, float* y, int n, cudaStream_t stream) {
  loss<<<1, THREADS, 0, stream>>>(p, t, y, n);
}
"""
HOST = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

void launch(const float* p, const float* t, float* y, int n, cudaStream_t stream);

torch::Tensor run(torch::Tensor p, torch::Tensor t) {
  auto y = torch::empty({}, p.options());
  auto stream = c10::cuda::getCurrentCUDAStream();
  launch(p.data_ptr<float>(), t.data_ptr<float>(), y.data_ptr<float>(), p.numel(), stream);
  return y;
}
"""
built = load_inline(
    name="mse_loss_inline",
    cpp_sources=HOST,
    cuda_sources=DEVICE,
    functions=["run"],
    no_implicit_headers=True,  # torch's take most of the time to compile: only the host's file includes them
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return built.run(predictions, targets)
