from torch import nn
from torch.utils.cpp_extension import load_inline

DEVICE = """
#include <cuda_runtime.h>

constexpr int TILE = 16;

__global__ void product(const float* a, const float* b, float* c, int n) {
  __shared__ float left[TILE][TILE], right[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float total = 0.0f;
  for (int begin = 0; begin < n - TILE; begin += TILE) {
    int across = begin + threadIdx.x, down = begin + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < n && across < n ? a[row * n + across] : 0.0f;
    right[threadIdx.y][threadIdx.x] = down < n && col < n ? b[down * n + col] : 0.0f;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) total += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = total;
}

void launch(const float* a, const float* b, float* c, int n, cudaStream_t stream) {
  dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), block(TILE, TILE);
  product<<<grid, block, 0, stream>>>(a, b, c, n);
}
"""
HOST = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

void launch(const float* a, const float* b, float* c, int n, cudaStream_t stream);

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  auto stream = c10::cuda::getCurrentCUDAStream();
  launch(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), a.size(0), stream);
  return c;
}
"""
built = load_inline(
    name="matmul_square_inline",
    cpp_sources=HOST,
    cuda_sources=DEVICE,
    functions=["run"],
    no_implicit_headers=True,  # torch's take most of the time to compile: only the host's file includes them
)


class ModelNew(nn.Module):
    def forward(self, A, B):
        return built.run(A, B)
