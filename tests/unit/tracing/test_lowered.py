"""Marks in CUDA source as TileLang generates it."""

from itertools import pairwise

from kernelci.tracing.lowered import marked

# As TileLang 0.1.15 writes a pipelined loop for sm_90a and for sm_80, with what matters here.
WARP_SPECIALISED = """\
extern "C" __global__ void k(int n);
extern "C" __global__ void __launch_bounds__(384, 1) k(int n) {
  KERNELCI_BEGIN_compute();
  if (((int)threadIdx.x) < 128) {
    tl::warpgroup_reg_dealloc<24>();
    for (int step = 0; step < n; ++step) {
      mbarrier[((step % 3) + 3)].wait((((step % 6) / 3) ^ 1));
      tl::tma_load(a_desc, mbarrier[(step % 3)], left, (step * 64), 0);
    }
  } else {
    tl::warpgroup_reg_alloc<240>();
    for (int step = 0; step < n; ++step) {
      mbarrier[(step % 3)].wait(((step % 6) / 3));
      tl::wgmma_ss<64>(a, b);
    }
    KERNELCI_END_compute();
  }
}
"""
ASYNCHRONOUS = """\
extern "C" __global__ void __launch_bounds__(128, 1) k(int n) {
  for (int step = 0; step < n; ++step) {
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      tl::cp_async_gs_conditional<16>(left, a);
    }
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      tl::cp_async_gs<16>(right, b);
    }
    tl::cp_async_commit();
    tl::cp_async_wait<1>();
    __syncthreads();
    tl::mma_sync<16>(c, left, right);
  }
}
"""


def test_each_kernel_gets_a_track() -> None:
    assert "k(int n) { KERNELCI_TRACE_KERNEL();\n" in marked(ASYNCHRONOUS, ())
    assert 1 == marked(WARP_SPECIALISED, ()).count("KERNELCI_TRACE_KERNEL();")


def test_a_producer_loads_and_consumers_wait() -> None:
    found = [line.strip() for line in marked(WARP_SPECIALISED, ("load", "wait", "compute")).split("\n")]
    assert [
        "tl::warpgroup_reg_dealloc<24>();",
        "KERNELCI_BEGIN_load();",
        "for (int step = 0; step < n; ++step) {",
        "mbarrier[((step % 3) + 3)].wait((((step % 6) / 3) ^ 1));",
        "tl::tma_load(a_desc, mbarrier[(step % 3)], left, (step * 64), 0);",
        "}",
        "KERNELCI_END_load();",
        "} else {",
        "tl::warpgroup_reg_alloc<240>();",
        "KERNELCI_BEGIN_compute();",
        "for (int step = 0; step < n; ++step) {",
        "KERNELCI_BEGIN_wait();",
        "mbarrier[(step % 3)].wait(((step % 6) / 3));",
        "KERNELCI_END_wait();",
    ] == found[3:17]


def test_groups_of_asynchronous_copies_load_and_their_waits_wait() -> None:
    found = [line.strip() for line in marked(ASYNCHRONOUS, ("load", "wait")).split("\n")]
    assert [
        ("KERNELCI_BEGIN_load();", "#pragma unroll"),
        ("KERNELCI_END_load();", "KERNELCI_BEGIN_wait();"),
        ("KERNELCI_BEGIN_wait();", "tl::cp_async_wait<1>();"),
        ("KERNELCI_END_wait();", "tl::mma_sync<16>(c, left, right);"),
    ] == [(line, after) for line, after in pairwise(found) if line.startswith("KERNELCI_")]


def test_nothing_is_marked_that_the_card_does_not_name() -> None:
    assert "KERNELCI_BEGIN" not in marked(ASYNCHRONOUS, ("compute",))


def test_a_kernel_that_marks_loads_itself_keeps_its_own() -> None:
    own = ASYNCHRONOUS.replace("    __syncthreads();\n    #pragma", "    KERNELCI_BEGIN_load();\n    #pragma", 1)
    assert 1 == marked(own, ("load",)).count("KERNELCI_BEGIN_load();")
