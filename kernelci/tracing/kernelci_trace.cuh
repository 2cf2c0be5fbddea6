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

struct Header { unsigned magic, version, tracks, events, claimed, rest[11]; };
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

    __device__ __forceinline__ Tracer() : track(nullptr), number(0), capacity(0), count(0) {
        unsigned lane;
        asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
        if (lane != 0) return;
        Header* const header = reinterpret_cast<Header*>(KERNELCI_TRACE);
        number = atomicAdd(&header->claimed, 1u);
        capacity = *reinterpret_cast<volatile unsigned*>(&header->events);
        if (number >= *reinterpret_cast<volatile unsigned*>(&header->tracks)) return;
        const unsigned long long stride = sizeof(Track) + (unsigned long long)capacity * sizeof(Record);
        track = reinterpret_cast<Track*>(KERNELCI_TRACE + sizeof(Header) + number * stride);
        unsigned long long grid;
        asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
        asm volatile("mov.u32 %0, %%smid;" : "=r"(track->sm));
        track->launch = (unsigned)grid;
        track->block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        track->warp = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
        track->state = 1;
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
