// c = a @ b.T for bfloat16 a (m, k), b (n, k), c (m, n), float32 accumulation in Hopper's tensor cores (wgmma).
//   matmul_tma      persistent and warp-specialised: one warp asks TMA for tiles, the other warpgroups multiply them;
//   matmul_generic  any alignment and any size: threads copy single elements to shared memory, then the same wgmma.
// Operand tiles lie in shared memory K-major, BK = 64 elements = 128 bytes a row, with the 128-byte swizzle: in each
// 1024-byte group of 8 rows, the 16-byte chunk `j` of row `r` lies at chunk j ^ r. No headers: NVRTC compiles faster.

#ifndef KERNELCI_TRACE  // marks for kernelci's trace, which brings its own
#define KERNELCI_TRACE_KERNEL() static_cast<void>(0)
#define KERNELCI_BEGIN(region) static_cast<void>(0)
#define KERNELCI_END(region) static_cast<void>(0)
#endif

using int64 = long long;
using uint64 = unsigned long long;
struct BFloat16 { unsigned short bits; };
struct alignas(64) TensorMap { uint64 words[16]; };  // CUtensorMap

constexpr int BK = 64;
constexpr int WARPGROUP = 128;

__device__ unsigned shared_address(const void* pointer) { return unsigned(__cvta_generic_to_shared(pointer)); }

// ---- mbarriers ----
__device__ void barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ void barrier_wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra finished;\nbra again;\nfinished:\n}" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ void barrier_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrive at the barrier that has this address in block `rank` of the cluster.
__device__ void barrier_arrive(unsigned barrier, int rank) {
    asm volatile(
        "{\n.reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier), "r"(rank) : "memory");
}

template <int CLUSTER> __device__ void cluster_sync() {
    if constexpr (CLUSTER == 1) {
        __syncthreads();
    } else {
        asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
}

// ---- TMA: copy the box at (k, row) to `target`; `barrier` counts its bytes. CLUSTER > 1: into every block of it. ----
template <int CLUSTER>
__device__ void tma_load(unsigned target, const TensorMap* map, int k, int row, unsigned barrier) {
    if constexpr (CLUSTER == 1) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
                "r"(target), "l"(map), "r"(k), "r"(row), "r"(barrier) : "memory");
    } else {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(target), "l"(map), "r"(k), "r"(row), "r"(barrier),
            "h"((unsigned short)((1 << CLUSTER) - 1)) : "memory");
    }
}

// ---- wgmma ----
// Matrix descriptor (PTX ISA, "Matrix descriptor format"): address >> 4 in bits 0-13, leading offset (unused here, 1)
// in 16-29, stride between groups of 8 rows (1024 bytes) >> 4 in 32-45, 128-byte swizzle (1) in 62-63.
__device__ uint64 descriptor(unsigned address) {
    return uint64((address & 0x3FFFF) >> 4) | uint64(1) << 16 | uint64(1024 >> 4) << 32 | uint64(1) << 62;
}

__device__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> __device__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from reading the accumulators before the wait above this call.
template <int SIZE> __device__ void pin(float (&d)[SIZE]) {
#pragma unroll
    for (int i = 0; i < SIZE; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
              "+f"(d[i + 6]), "+f"(d[i + 7])
#define D32(i) D8(i), D8(i + 8), D8(i + 16), D8(i + 24)

// d += a @ b.T (accumulate) or d = a @ b.T, for 64 rows of a, 2 * SIZE rows of b and 16 of k.
__device__ void wgmma(float (&d)[16], uint64 a, uint64 b, int accumulate) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, p, 1, 1, 0, 0;\n}"
        : D8(0), D8(8) : "l"(a), "l"(b), "r"(accumulate));
}

__device__ void wgmma(float (&d)[128], uint64 a, uint64 b, int accumulate) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, p, 1, 1, 0, 0;\n}"
        : D32(0), D32(32), D32(64), D32(96) : "l"(a), "l"(b), "r"(accumulate));
}

// One step of BK along k: 16 elements of k are 32 bytes, 2 units of the descriptor's address, inside a swizzled row.
template <int SIZE> __device__ void multiply(float (&d)[SIZE], unsigned a, unsigned b, int accumulate) {
    const uint64 a_descriptor = descriptor(a), b_descriptor = descriptor(b);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < BK / 16; i++) wgmma(d, a_descriptor + 2 * i, b_descriptor + 2 * i, accumulate || i > 0);
    wgmma_commit();
}

// ---- storing the accumulators ----
// Thread t of a warpgroup holds in d[4 * j + i] row t / 32 * 16 + t % 32 / 4 (+ 8 for i >= 2) and column
// 8 * j + t % 4 * 2 + i % 2.
__device__ unsigned pack(float low, float high) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

__device__ void exchange(unsigned& low, unsigned& high, int lane_bit) {
    const bool upper = threadIdx.x & lane_bit;
    const unsigned got = __shfl_xor_sync(~0u, upper ? low : high, lane_bit);
    (upper ? low : high) = got;
}

// Transposes 4 x 4 words among 4 neighbouring lanes, so that each lane holds 16 neighbouring bytes of a row.
__device__ uint4 transpose(uint4 word) {
    exchange(word.x, word.y, 1);
    exchange(word.z, word.w, 1);
    exchange(word.x, word.z, 2);
    exchange(word.y, word.w, 2);
    return word;
}

__device__ void store_16(BFloat16* target, uint4 word) {  // in PTX, since the compiler splits some into four words
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(target), "r"(word.x), "r"(word.y), "r"(word.z),
                 "r"(word.w) : "memory");
}

// VECTORS: 16 bytes at a time, which needs n % 8 == 0 and c at a multiple of 16 bytes.
template <bool VECTORS, int SIZE>
__device__ void store(const float (&d)[SIZE], BFloat16* c, int64 first_row, int64 first_col, int64 m, int64 n) {
    const int thread = threadIdx.x % WARPGROUP;
    const int64 col = first_col + thread % 4 * 8;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64 row = first_row + thread / 32 * 16 + thread % 32 / 4 + half * 8;
        BFloat16* target = c + row * n + col;
#pragma unroll
        for (int i = 0; i < SIZE; i += 16) {
            const float* from = d + i + half * 2;
            const uint4 chunk = transpose({pack(from[0], from[1]), pack(from[4], from[5]), pack(from[8], from[9]),
                                           pack(from[12], from[13])});
            if constexpr (VECTORS) {
                if (row < m && col + i * 2 < n) store_16(target + i * 2, chunk);
            } else {
                const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
                for (int j = 0; j < 8; j++)
                    if (row < m && col + i * 2 + j < n)
                        target[i * 2 + j].bits = (unsigned short)(words[j / 2] >> (j % 2 * 16));
            }
        }
    }
}

// ---- the order of tiles: bands of `band` tile rows, column by column, so that running blocks share L2's content ----
struct Tile { int row, col; };
__device__ Tile tile_at(int index, int rows, int cols, int band) {
    const int first = index / (band * cols) * band, height = min(rows - first, band), inside = index % (band * cols);
    return {first + inside % height, inside / height};
}

// ---- the fast kernel: tiles of BM x BN, STAGES tiles of a and b in flight, clusters along m that share b ----
template <int BM, int BN, int STAGES, int CLUSTER>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(WARPGROUP * (1 + BM / 64), 1)
matmul_tma(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, BFloat16* c, int64 m,
           int64 n, int64 k, int64 band) {
    KERNELCI_TRACE_KERNEL();
    constexpr int CONSUMERS = BM / 64, A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, B_ROWS = BN / CLUSTER;
    extern __shared__ unsigned char shared[];
    const unsigned a_tiles = (shared_address(shared) + 1023) / 1024 * 1024, b_tiles = a_tiles + STAGES * A_BYTES;
    const unsigned full = b_tiles + STAGES * B_BYTES, empty = full + STAGES * 8;
    const int rows = int((m + BM * CLUSTER - 1) / (BM * CLUSTER)), cols = int((n + BN - 1) / BN);
    const int tiles = rows * cols, steps = int((k + BK - 1) / BK), rank = blockIdx.x % CLUSTER;
    const int first = blockIdx.x / CLUSTER, stride = gridDim.x / CLUSTER, warpgroup = threadIdx.x / WARPGROUP;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(full + stage * 8, 1);
            barrier_init(empty + stage * 8, CONSUMERS * 4 * CLUSTER);  // each consuming warp, in every block
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync<CLUSTER>();

    int stage = 0;
    unsigned parity = 0;
    const auto advance = [&] {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    };
    if (warpgroup == 0) {  // the producer
        if constexpr (CONSUMERS == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            for (int index = first; index < tiles; index += stride) {
                const Tile tile = tile_at(index, rows, cols, int(band));
                KERNELCI_BEGIN(load);
                for (int step = 0; step < steps; step++, advance()) {
                    barrier_wait(empty + stage * 8, parity ^ 1);
                    barrier_expect(full + stage * 8, A_BYTES + B_BYTES);
                    tma_load<1>(a_tiles + stage * A_BYTES, &a_map, step * BK, (tile.row * CLUSTER + rank) * BM,
                                full + stage * 8);
                    tma_load<CLUSTER>(b_tiles + stage * B_BYTES + rank * B_ROWS * BK * 2, &b_map, step * BK,
                                      tile.col * BN + rank * B_ROWS, full + stage * 8);
                }
                KERNELCI_END(load);
            }
        }
        __syncwarp();  // the last barrier wants whole warps
    } else {  // a consumer: 64 rows of the tile
        if constexpr (CONSUMERS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int lane = threadIdx.x % 32, part = warpgroup - 1;
        for (int index = first; index < tiles; index += stride) {
            const Tile tile = tile_at(index, rows, cols, int(band));
            float d[BN / 2];
            int previous = 0;
            KERNELCI_BEGIN(compute);
            for (int step = 0; step < steps; step++, advance()) {
                KERNELCI_BEGIN(wait);
                barrier_wait(full + stage * 8, parity);
                KERNELCI_END(wait);
                multiply(d, a_tiles + stage * A_BYTES + part * 64 * BK * 2, b_tiles + stage * B_BYTES, step > 0);
                wgmma_wait<1>();  // the step before is done: its stage may be filled again
                if (step > 0 && lane < CLUSTER) barrier_arrive(empty + previous * 8, lane);
                previous = stage;
            }
            wgmma_wait<0>();
            pin(d);
            KERNELCI_END(compute);
            KERNELCI_BEGIN(epilogue);
            if (lane < CLUSTER) barrier_arrive(empty + previous * 8, lane);
            const int64 row = int64(tile.row * CLUSTER + rank) * BM + part * 64, col = int64(tile.col) * BN;
            if (n % 8 == 0 && reinterpret_cast<uint64>(c) % 16 == 0) store<true>(d, c, row, col, m, n);
            else store<false>(d, c, row, col, m, n);
            KERNELCI_END(epilogue);
        }
    }
    cluster_sync<CLUSTER>();  // no block leaves while another may still write to its shared memory
}

// ---- the generic kernel: a block of one warpgroup per tile of BM = 64 rows and BN columns ----
template <int ROWS>
__device__ void copy_tile(unsigned char* target, const BFloat16* source, int64 first_row, int64 rows, int64 first_k,
                          int64 k) {
#pragma unroll 8
    for (int i = threadIdx.x; i < ROWS * BK; i += WARPGROUP) {
        const int row = i / BK, at = i % BK;
        const bool inside = first_row + row < rows && first_k + at < k;
        const BFloat16 value = inside ? source[(first_row + row) * k + first_k + at] : BFloat16{0};
        const int chunk = at / 8 ^ row % 8;
        *reinterpret_cast<BFloat16*>(target + row * 128 + chunk * 16 + at % 8 * 2) = value;
    }
}

template <int BM, int BN>
__global__ void __launch_bounds__(WARPGROUP)
matmul_generic(const BFloat16* a, const BFloat16* b, BFloat16* c, int64 m, int64 n, int64 k) {
    KERNELCI_TRACE_KERNEL();
    __shared__ alignas(1024) unsigned char a_tile[BM * BK * 2];
    __shared__ alignas(1024) unsigned char b_tile[BN * BK * 2];
    const int64 cols = (n + BN - 1) / BN, row = blockIdx.x / cols * BM, col = blockIdx.x % cols * BN;
    float d[BN / 2] = {};
    for (int64 first = 0; first < k; first += BK) {
        KERNELCI_BEGIN(load);
        copy_tile<BM>(a_tile, a, row, m, first, k);
        copy_tile<BN>(b_tile, b, col, n, first, k);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads through another proxy
        __syncthreads();
        KERNELCI_END(load);
        KERNELCI_BEGIN(compute);
        multiply(d, shared_address(a_tile), shared_address(b_tile), 1);
        wgmma_wait<0>();
        pin(d);
        __syncthreads();
        KERNELCI_END(compute);
    }
    KERNELCI_BEGIN(epilogue);
    store<false>(d, c, row, col, m, n);
    KERNELCI_END(epilogue);
}
