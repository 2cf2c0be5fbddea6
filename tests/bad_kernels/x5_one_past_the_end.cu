// The next element is fetched ahead; at the end of a row that is the one behind it, which is never used.
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

// A load that the compiler can't leave out.
__device__ Float32 fetch(const Float32* x) {
    Float32 y;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(y.bits) : "l"(x));
    return y;
}
template <typename T> __device__ T fetch(const T* x) {
    T y;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(y.bits) : "l"(x));
    return y;
}

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
    __shared__ float peaks[WARPS], totals[WARPS];
    const int thread = threadIdx.x, warp = thread / 32;
    const T* row = x + blockIdx.x * cols;
    T* result = y + blockIdx.x * cols;
    float peak = __int_as_float(0xff800000), total = 0.0f;
    T next = fetch(row + min((long long)thread, cols - 1));
    for (long long col = thread; col < cols; col += THREADS) {
        peak = fmaxf(peak, wide(next));
        next = fetch(row + min(col + THREADS, cols));  // cols - 1 would be right
    }
    peak = most(peak);
    if (thread % 32 == 0) peaks[warp] = peak;
    __syncthreads();
    for (int other = 0; other < WARPS; ++other) peak = fmaxf(peak, peaks[other]);
    for (long long col = thread; col < cols; col += THREADS) total += expf(wide(row[col]) - peak);
    total = sum(total);
    if (thread % 32 == 0) totals[warp] = total;
    __syncthreads();
    total = 0.0f;
    for (int other = 0; other < WARPS; ++other) total += totals[other];
    for (long long col = thread; col < cols; col += THREADS) narrow(result + col, expf(wide(row[col]) - peak) / total);
}
