// kernelci_trace.cuh: marks of what a warp is doing, for kernelci's trace rung (docs/trace.md).
//
//   KERNELCI_TRACE_KERNEL();      once, first in a kernel: this warp's track, which ends where the scope does
//   KERNELCI_BEGIN(load);         a region begins; its name is one of the card's `regions`
//   KERNELCI_END(load);           it ends
//
// Without KERNELCI_TRACE all of them are nothing. A trace build defines it as the address of the buffer, and for each
// region KERNELCI_REGION_<name> as its number. Lane 0 of a warp records; where it is not among the lanes that arrive,
// nothing is recorded. The layout is that of kernelci/tracing/records.py. No headers, for NVRTC.
#pragma once

#ifdef KERNELCI_TRACE

namespace kernelci_trace {

struct Header { unsigned magic, version, tracks, events, claimed, displaced, missed, rest[9]; };
struct Track {
    unsigned long long begin, end, timer_begin, timer_end;
    unsigned launch, sm, block, warp, wanted, state;
    unsigned long long rest;
};
struct alignas(16) Record { unsigned long long clock; unsigned mark, track; };
static_assert(sizeof(Header) == 64 && sizeof(Track) == 64 && sizeof(Record) == 16, "as the reader has them");

// "memory": loads and stores stay on their side of a mark. What only touches registers may move across it.
__device__ __forceinline__ unsigned long long clock() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}
__device__ __forceinline__ unsigned long long timer() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

struct Tracer {
    Track* track;  // null on all lanes but the first, and where no track was free
    unsigned number, capacity, count;

    // Whether the track of this number was free and is this warp's now.
    __device__ __forceinline__ bool claim(unsigned wanted, unsigned tracks) {
        if (wanted >= tracks) return false;
        const unsigned long long stride = sizeof(Track) + (unsigned long long)capacity * sizeof(Record);
        Track* const found = reinterpret_cast<Track*>(KERNELCI_TRACE + sizeof(Header) + wanted * stride);
        if (atomicCAS(&found->state, 0u, 1u) != 0u) return false;
        track = found;
        number = wanted;
        return true;
    }

    __device__ __forceinline__ Tracer() : track(nullptr), number(0), capacity(0), count(0) {
        unsigned lane;
        asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
        if (lane != 0) return;
        Header* const header = reinterpret_cast<Header*>(KERNELCI_TRACE);
        const unsigned tracks = header->tracks;
        capacity = header->events;
        const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        const unsigned warp = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
        const unsigned warps = (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
        // A track of its own by its place in the launch: of one counter for all, thousands of warps would stand in line.
        const unsigned long long place = (unsigned long long)block * warps + warp;
        if (!claim(place < tracks ? (unsigned)place : tracks, tracks)) {
            // Another launch's warp has it, or there are not so many: then the next one from the end that is free.
            unsigned back;
            do {
                back = atomicAdd(&header->displaced, 1u);
                if (back >= tracks) {
                    atomicAdd(&header->missed, 1u);
                    return;
                }
            } while (!claim(tracks - 1 - back, tracks));
        }
        unsigned long long grid;
        asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
        asm volatile("mov.u32 %0, %%smid;" : "=r"(track->sm));
        track->launch = (unsigned)grid;
        track->block = block;
        track->warp = warp;
        track->timer_begin = timer();
        track->begin = clock();
    }

    __device__ __forceinline__ void mark(unsigned region) {
        if (track == nullptr) return;
        const unsigned long long now = clock();
        if (count < capacity) {
            Record* const record = reinterpret_cast<Record*>(track + 1) + count;
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(record), "r"((unsigned)now),
                         "r"((unsigned)(now >> 32)), "r"(region), "r"(number)
                         : "memory");
        }
        count++;
    }

    __device__ __forceinline__ ~Tracer() {
        if (track == nullptr) return;
        track->end = clock();
        track->timer_end = timer();
        track->wanted = count;
        track->state = 2;
    }
};

}  // namespace kernelci_trace

#define KERNELCI_TRACE_KERNEL() kernelci_trace::Tracer kernelci_tracer
#define KERNELCI_BEGIN(name) kernelci_tracer.mark(KERNELCI_REGION_##name)
#define KERNELCI_END(name) kernelci_tracer.mark(KERNELCI_REGION_##name | 0x80000000u)

#else

#define KERNELCI_TRACE_KERNEL() static_cast<void>(0)
#define KERNELCI_BEGIN(name) static_cast<void>(0)
#define KERNELCI_END(name) static_cast<void>(0)

#endif
