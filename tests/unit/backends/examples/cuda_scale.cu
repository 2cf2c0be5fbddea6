extern "C" __global__ void scale(float* x, float* y, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) y[at] = 2.0f * x[at];
}

template <int N>
__global__ void twice(float* x, float* y, int n) {
  __shared__ float tile[N];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[N - 1 - threadIdx.x];
}

struct alignas(64) TensorMap {
  char bytes[128];
};

extern "C" __global__ void described(const __grid_constant__ TensorMap map, float* y) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
  y[threadIdx.x] = 1.0f;
}
