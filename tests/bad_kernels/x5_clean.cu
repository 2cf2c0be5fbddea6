// What the others of this class should have been: all four tools have nothing to say.
struct Float32 { float bits; };
struct Float16 { unsigned short bits; };
struct BFloat16 { unsigned short bits; };

__device__ float wide(Float32 x) { return x.bits; }
__device__ float wide(BFloat16 x) { return __uint_as_float(unsigned(x.bits) << 16); }
__device__ float wide(Float16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ void narrow(Float32* y, float x) { y->bits = x; }
__device__ void narrow(Float16* y, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y->bits) : "f"(x)); }
__device__ void narrow(BFloat16* y, float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y->bits) : "f"(x)); }

constexpr int THREADS = 128;

// One block a row.
template <typename T> __global__ void softmax_row(const T* x, T* y, long long cols) {
    __shared__ float peaks[THREADS], totals[THREADS];
    const int thread = threadIdx.x;
    const T* row = x + blockIdx.x * cols;
    T* result = y + blockIdx.x * cols;
    float peak = __int_as_float(0xff800000), total = 0.0f;
    for (long long col = thread; col < cols; col += THREADS) peak = fmaxf(peak, wide(row[col]));
    peaks[thread] = peak;
    __syncthreads();
    for (int other = 0; other < THREADS; ++other) peak = fmaxf(peak, peaks[other]);
    for (long long col = thread; col < cols; col += THREADS) total += expf(wide(row[col]) - peak);
    totals[thread] = total;
    __syncthreads();
    total = 0.0f;
    for (int other = 0; other < THREADS; ++other) total += totals[other];
    for (long long col = thread; col < cols; col += THREADS) narrow(result + col, expf(wide(row[col]) - peak) / total);
}
