// Softmax over the rows of a row-major matrix, float32 inside. Two kernels:
//   softmax_held      the row stays in registers: one read, one write;
//   softmax_streamed  rows too long for that: read twice, the second time from L2 where it still lies there.
// No headers: NVRTC then needs no include path and compiles in a fraction of the time.

#ifndef KERNELCI_TRACE  // marks for kernelci's trace, which brings its own
#define KERNELCI_TRACE_KERNEL() static_cast<void>(0)
#define KERNELCI_BEGIN(region) static_cast<void>(0)
#define KERNELCI_END(region) static_cast<void>(0)
#endif

constexpr float MINUS_INFINITY = __builtin_bit_cast(float, 0xff800000u);

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

// float32 results need the accurate expf and a quotient exact to the last bit; 16-bit ones round that away.
__device__ float exponential(float x, Float32) { return expf(x); }
template <typename T> __device__ float exponential(float x, T) { return __expf(x); }

__device__ float quotient(float x, float divisor, float inverse, Float32) {
    float y = x * inverse;
    return fmaf(fmaf(-y, divisor, x), inverse, y);
}
template <typename T> __device__ float quotient(float x, float, float inverse, T) { return x * inverse; }

// ---- memory: WIDTH elements in one access of WIDTH * sizeof(T) = 16 bytes, or one element ----
template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) Pack { T element[WIDTH]; };

// Streaming (evict first): this data is not read again.
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

// ---- reductions over the THREADS (a power of two from 32 to 1024) that share a row ----
struct Max { static __device__ float of(float a, float b) { return fmaxf(a, b); } };
struct Sum { static __device__ float of(float a, float b) { return a + b; } };

template <typename Op, int LANES = 32> __device__ float reduce_warp(float value) {
#pragma unroll
    for (int lane = LANES / 2; lane > 0; lane /= 2) value = Op::of(value, __shfl_xor_sync(~0u, value, lane));
    return value;
}

// `partial` must not be in use by an earlier reduction.
template <typename Op, int THREADS> __device__ float reduce(float value, float* partial) {
    value = reduce_warp<Op>(value);
    if constexpr (THREADS > 32) {
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
        __syncthreads();
        value = reduce_warp<Op, THREADS / 32>(partial[threadIdx.x % (THREADS / 32)]);
    }
    return value;
}

// ---- the row in registers: COUNT packs a thread; blockDim = (THREADS, rows of a block) ----
template <typename T, int WIDTH, int COUNT, int THREADS>
__global__ void __launch_bounds__(THREADS < 128 ? 128 : THREADS)
softmax_held(const T* x, T* y, long long rows, long long cols) {
    using Vector = Pack<T, WIDTH>;
    __shared__ float partial[2][32];
    const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    if (row >= rows) return;  // whole warps: a block of several rows has a warp for each
    KERNELCI_TRACE_KERNEL();
    const Vector* source = reinterpret_cast<const Vector*>(x + row * cols);
    Vector* target = reinterpret_cast<Vector*>(y + row * cols);
    const int packs = int(cols) / WIDTH;

    Vector raw[COUNT];
    KERNELCI_BEGIN(load);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int at = i * THREADS + threadIdx.x;
        if (at < packs) raw[i] = load_last(source + at);
    }
    float value[COUNT][WIDTH], largest = MINUS_INFINITY;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            value[i][j] = i * THREADS + threadIdx.x < packs ? to_float(raw[i].element[j]) : MINUS_INFINITY;
            largest = fmaxf(largest, value[i][j]);
        }
    KERNELCI_END(load);  // the maximum has waited for all of the row
    KERNELCI_BEGIN(compute);
    largest = reduce<Max, THREADS>(largest, partial[0]);
    float total = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            value[i][j] = exponential(value[i][j] - largest, T());
            total += value[i][j];
        }
    total = reduce<Sum, THREADS>(total, partial[1]);
    KERNELCI_END(compute);
    KERNELCI_BEGIN(epilogue);
    const float inverse = 1 / total;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int at = i * THREADS + threadIdx.x;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) from_float(quotient(value[i][j], total, inverse, T()), raw[i].element[j]);
        if (at < packs) store_last(target + at, raw[i]);
    }
    KERNELCI_END(epilogue);
}

// exp(x - base) where base is a running maximum; before the first finite value both may be -infinity.
template <typename T> __device__ float scaled(float x, float base) {
    return exponential(x - (base == MINUS_INFINITY ? 0.0f : base), T());
}

// ---- the row streamed twice by a block: maximum and sum in one pass (online), then the result. The first `kept` packs
// stay in shared memory, so that the second pass reads only the rest again, from L2. ----
template <typename T, int WIDTH, int THREADS>
__global__ void __launch_bounds__(THREADS)
softmax_streamed(const T* x, T* y, long long rows, long long cols, long long kept) {
    using Vector = Pack<T, WIDTH>;
    constexpr int BATCH = 4;  // loads in flight per thread
    extern __shared__ uint4 shared[];
    Vector* const keep = reinterpret_cast<Vector*>(shared);
    __shared__ float partial[2][32];
    const Vector* source = reinterpret_cast<const Vector*>(x + blockIdx.x * cols);
    Vector* target = reinterpret_cast<Vector*>(y + blockIdx.x * cols);
    const long long packs = cols / WIDTH;

    KERNELCI_TRACE_KERNEL();
    float largest = MINUS_INFINITY, total = 0;
    for (long long first = threadIdx.x; first < packs; first += BATCH * THREADS) {
        Vector raw[BATCH];
        float next = largest;
        KERNELCI_BEGIN(load);
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (first + i * THREADS < packs) raw[i] = source[first + i * THREADS];
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (first + i * THREADS < packs) {
                if (first + i * THREADS < kept) keep[first + i * THREADS] = raw[i];
#pragma unroll
                for (int j = 0; j < WIDTH; j++) next = fmaxf(next, to_float(raw[i].element[j]));
            }
        KERNELCI_END(load);
        KERNELCI_BEGIN(compute);
        total *= scaled<T>(largest, next);
        largest = next;
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (first + i * THREADS < packs)
#pragma unroll
                for (int j = 0; j < WIDTH; j++) total += scaled<T>(to_float(raw[i].element[j]), next);
        KERNELCI_END(compute);
    }
    KERNELCI_BEGIN(compute);
    const float row_largest = reduce<Max, THREADS>(largest, partial[0]);
    total = reduce<Sum, THREADS>(total * scaled<T>(largest, row_largest), partial[1]);
    KERNELCI_END(compute);
    const float inverse = 1 / total;
    KERNELCI_BEGIN(epilogue);
    for (long long first = threadIdx.x; first < packs; first += BATCH * THREADS) {
        Vector raw[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const long long at = first + i * THREADS;
            if (at < packs) raw[i] = at < kept ? keep[at] : load_last(source + at);
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
#pragma unroll
            for (int j = 0; j < WIDTH; j++) {
                const float value = exponential(to_float(raw[i].element[j]) - row_largest, T());
                from_float(quotient(value, total, inverse, T()), raw[i].element[j]);
            }
            if (first + i * THREADS < packs) store_last(target + first + i * THREADS, raw[i]);
        }
    }
    KERNELCI_END(epilogue);
}
