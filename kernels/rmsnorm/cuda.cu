// Residual add and RMS norm of the rows of a row-major matrix, float32 inside:
//   h = x + residual;  residual_out = h;  y = h / sqrt(mean(h * h) + eps) * weight.
// Two kernels: rmsnorm_held keeps h in registers (each byte moves once); rmsnorm_streamed, for rows too long for that,
// computes h twice. No headers: NVRTC then needs no include path and compiles in a fraction of the time.

#ifndef KERNELCI_TRACE  // marks for kernelci's trace, which brings its own
#define KERNELCI_TRACE_KERNEL() static_cast<void>(0)
#define KERNELCI_BEGIN(region) static_cast<void>(0)
#define KERNELCI_END(region) static_cast<void>(0)
#endif

// ---- element types: 16-bit ones as raw bits, converted by PTX ----
struct Float32 { float bits; };
struct Float16 { unsigned short bits; };
struct BFloat16 { unsigned short bits; };

__device__ float to_float(Float32 x) { return x.bits; }
__device__ float to_float(BFloat16 x) { return __uint_as_float(unsigned(x.bits) << 16); }
__device__ float to_float(Float16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ void from_float(float x, Float32& y) { y.bits = x; }
__device__ void from_float(float x, Float16& y) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
__device__ void from_float(float x, BFloat16& y) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }

// ---- memory: WIDTH elements in one access of WIDTH * sizeof(T) = 16 bytes, or one element ----
template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) Pack { T element[WIDTH]; };

// Streaming (evict first): for data that is not read again.
template <typename T, int WIDTH> __device__ Pack<T, WIDTH> load_last(const Pack<T, WIDTH>* address) {
    Pack<T, WIDTH> pack;
    if constexpr (WIDTH == 1) {
        return *address;
    } else {
        uint4 word = __ldcs(reinterpret_cast<const uint4*>(address));
        memcpy(&pack, &word, sizeof pack);
        return pack;
    }
}
template <typename T, int WIDTH> __device__ void store_last(Pack<T, WIDTH>* address, const Pack<T, WIDTH>& pack) {
    if constexpr (WIDTH == 1) {
        *address = pack;
    } else {
        uint4 word;
        memcpy(&word, &pack, sizeof pack);
        __stcs(reinterpret_cast<uint4*>(address), word);
    }
}

// ---- the sum over the THREADS (a power of two from 32 to 1024) that share a row ----
template <int LANES = 32> __device__ float sum_warp(float value) {
#pragma unroll
    for (int lane = LANES / 2; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
    return value;
}

template <int THREADS> __device__ float sum_row(float value) {
    __shared__ float partial[32];
    value = sum_warp(value);
    if constexpr (THREADS > 32) {
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
        __syncthreads();
        value = sum_warp<THREADS / 32>(partial[threadIdx.x % (THREADS / 32)]);
    }
    return value;
}

__device__ float inverse_rms(float sum_of_squares, long long cols, double eps) {
    return 1 / sqrtf(sum_of_squares / float(cols) + float(eps));
}

// ---- h in registers: COUNT packs a thread; blockDim = (THREADS, rows of a block) ----
template <typename T, int WIDTH, int COUNT, int THREADS>
__global__ void __launch_bounds__(THREADS < 128 ? 128 : THREADS)
rmsnorm_held(const T* x, const T* residual, const T* weight, T* y, T* residual_out, long long rows, long long cols,
             double eps) {
    using Vector = Pack<T, WIDTH>;
    const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    if (row >= rows) return;  // whole warps: a block of several rows has a warp for each
    KERNELCI_TRACE_KERNEL();
    const Vector* source = reinterpret_cast<const Vector*>(x + row * cols);
    const Vector* addend = reinterpret_cast<const Vector*>(residual + row * cols);
    const Vector* scale = reinterpret_cast<const Vector*>(weight);
    Vector* target = reinterpret_cast<Vector*>(y + row * cols);
    Vector* sum_target = reinterpret_cast<Vector*>(residual_out + row * cols);
    const int packs = int(cols) / WIDTH;

    Vector raw[COUNT], other[COUNT];
    KERNELCI_BEGIN(load);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int at = i * THREADS + threadIdx.x;
        if (at < packs) {
            raw[i] = load_last(source + at);
            other[i] = load_last(addend + at);
        }
    }
    float h[COUNT][WIDTH], squares = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int at = i * THREADS + threadIdx.x;
        if (at < packs) {
#pragma unroll
            for (int j = 0; j < WIDTH; j++) {
                h[i][j] = to_float(raw[i].element[j]) + to_float(other[i].element[j]);
                squares += h[i][j] * h[i][j];
                from_float(h[i][j], raw[i].element[j]);
            }
            store_last(sum_target + at, raw[i]);
            other[i] = scale[at];  // before the barrier, so that its latency is hidden
        }
    }
    KERNELCI_END(load);  // the stores of h have waited for all of x and residual
    KERNELCI_BEGIN(compute);
    const float inverse = inverse_rms(sum_row<THREADS>(squares), cols, eps);
    KERNELCI_END(compute);
    KERNELCI_BEGIN(epilogue);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int at = i * THREADS + threadIdx.x;
        if (at < packs) {
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                from_float(h[i][j] * inverse * to_float(other[i].element[j]), raw[i].element[j]);
            store_last(target + at, raw[i]);
        }
    }
    KERNELCI_END(epilogue);
}

// ---- h computed twice by a block ----
template <typename T, int WIDTH, int THREADS>
__global__ void __launch_bounds__(THREADS)
rmsnorm_streamed(const T* x, const T* residual, const T* weight, T* y, T* residual_out, long long rows, long long cols,
                 double eps) {
    using Vector = Pack<T, WIDTH>;
    const long long row = blockIdx.x;
    const Vector* source = reinterpret_cast<const Vector*>(x + row * cols);
    const Vector* addend = reinterpret_cast<const Vector*>(residual + row * cols);
    const Vector* scale = reinterpret_cast<const Vector*>(weight);
    Vector* target = reinterpret_cast<Vector*>(y + row * cols);
    Vector* sum_target = reinterpret_cast<Vector*>(residual_out + row * cols);
    const long long packs = cols / WIDTH;

    KERNELCI_TRACE_KERNEL();
    float squares = 0;
    KERNELCI_BEGIN(load);  // around the loop: marks in it would keep two turns of it from overlapping
#pragma unroll 2
    for (long long at = threadIdx.x; at < packs; at += THREADS) {
        Vector raw = source[at];
        const Vector other = addend[at];
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const float h = to_float(raw.element[j]) + to_float(other.element[j]);
            squares += h * h;
            from_float(h, raw.element[j]);
        }
        store_last(sum_target + at, raw);
    }
    KERNELCI_END(load);
    KERNELCI_BEGIN(compute);
    const float inverse = inverse_rms(sum_row<THREADS>(squares), cols, eps);
    KERNELCI_END(compute);
    KERNELCI_BEGIN(epilogue);
#pragma unroll 2
    for (long long at = threadIdx.x; at < packs; at += THREADS) {
        Vector raw = load_last(source + at);
        const Vector other = load_last(addend + at), factor = scale[at];
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const float h = to_float(raw.element[j]) + to_float(other.element[j]);
            from_float(h * inverse * to_float(factor.element[j]), raw.element[j]);
        }
        store_last(target + at, raw);
    }
    KERNELCI_END(epilogue);
}
