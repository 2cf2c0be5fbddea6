# /// script
# dependencies = ["cuda-core>=1.0", "cuda-bindings>=13", "torch>=2.8"]
# [tool.kernelci]
# reference = "matmul"
# backend = "cuda"
# entry = "matmul"
# targets = ["sm_90a"]
# regions = ["load", "wait", "compute", "epilogue"]
# ///
"""Matrix product a @ b.T in CUDA C++ (NVRTC) for Hopper: TMA, wgmma, warp specialisation, a persistent grid.

Two builds of the fast kernel (tiles for many and for few rows) serve every shape whose rows TMA can address (k a
multiple of 8, pointers of 16 bytes); a generic wgmma kernel, which copies single elements, serves the rest and k = 0.
"""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import torch
from cuda.bindings import driver
from cuda.core import Kernel, ObjectCode, Program, ProgramOptions

BAND = 8  # clusters of tiles along m in one band of the tile order
BK = 64  # as in cuda.cu
Triple = tuple[int, int, int]


class Case(Protocol):
    """What `compile` reads of a case."""

    m: int
    n: int
    k: int
    dtype: torch.dtype


@dataclass(frozen=True)
class Variant:
    """A build: tiles of bm x bn, `stages` in flight, clusters of `cluster` blocks along m; 0 stages: generic."""

    bm: int
    bn: int
    stages: int
    cluster: int

    @property
    def expression(self) -> str:
        """The C++ name of the kernel."""
        if self.stages == 0:
            return f"matmul_generic<{self.bm}, {self.bn}>"
        return f"matmul_tma<{self.bm}, {self.bn}, {self.stages}, {self.cluster}>"

    @property
    def threads(self) -> int:
        """A producer warpgroup and one warpgroup for each 64 rows; the generic kernel has only the latter."""
        return 128 * (self.bm // 64 + (self.stages > 0))

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory: the stages, two barriers each, and room to align to 1024."""
        return self.stages * ((self.bm + self.bn) * BK * 2 + 16) + (1024 if self.stages else 0)


LARGE = Variant(bm=128, bn=256, stages=4, cluster=2)
FEW_ROWS = Variant(bm=64, bn=32, stages=12, cluster=1)
GENERIC = Variant(bm=64, bn=32, stages=0, cluster=1)


def choose(m: int, k: int, aligned: bool) -> Variant:
    """The build for a product of m rows, with a and b at multiples of 16 bytes (`aligned`) or not."""
    if not aligned or k == 0 or k % 8 != 0:
        return GENERIC
    return FEW_ROWS if m <= FEW_ROWS.bm else LARGE


@lru_cache(maxsize=64)
def build(arch: str, variant: Variant) -> ObjectCode:
    """Compile one variant for `arch` ("sm_90a"); needs no GPU."""
    source = Path(__file__).with_suffix(".cu")
    options = ProgramOptions(name=str(source), arch=arch, std="c++17", lineinfo=True)
    return Program(source.read_text(), "c++", options).compile("cubin", name_expressions=(variant.expression,))


def compile(case: Case, target: str) -> Iterator[ObjectCode]:
    """Yield the cubin that `matmul` launches for aligned tensors of this case, built for `target`."""
    yield build(target, choose(case.m, case.k, aligned=True))


def check(error: driver.CUresult) -> None:
    """Raise RuntimeError for a failed driver call."""
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA driver: {error.name}")


@lru_cache(maxsize=64)
def loaded(device: int, variant: Variant) -> Kernel:
    """The kernel of one variant, allowed its shared memory on `device`. RuntimeError unless the device is a Hopper."""
    if torch.cuda.get_device_capability(device) != (9, 0):
        raise RuntimeError("this kernel needs compute capability 9.0 (wgmma)")
    kernel = build("sm_90a", variant).get_kernel(variant.expression)
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(*driver.cuKernelSetAttribute(attribute, variant.shared_bytes, kernel.handle, driver.CUdevice(device)))
    return kernel


@lru_cache(maxsize=1)
def encoder() -> Callable[..., int]:
    """The driver's cuTensorMapEncodeTiled, called directly: it wants 64-byte aligned memory, cuda-bindings has 16."""
    error, address, _ = driver.cuGetProcAddress(b"cuTensorMapEncodeTiled", 12000, 0)
    check(error)
    word, pointer = ctypes.c_uint32, ctypes.c_void_p
    kinds = (pointer, word, word, pointer, pointer, pointer, pointer, pointer, word, word, word, word)
    return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(int(address))


class TensorMap:
    """TMA's view of a (rows, k) bfloat16 matrix in boxes of (box_rows, 64), swizzled by 128 bytes, zeros outside."""

    def __init__(self, pointer: int, rows: int, k: int, box_rows: int) -> None:
        self.memory = (ctypes.c_uint64 * 24)()  # a CUtensorMap has 128 bytes; the rest is room to align it
        self.address = -(-ctypes.addressof(self.memory) // 64) * 64
        sizes, strides = (ctypes.c_uint64 * 2)(k, rows), (ctypes.c_uint64 * 1)(k * 2)
        box, steps = (ctypes.c_uint32 * 2)(BK, box_rows), (ctypes.c_uint32 * 2)(1, 1)
        kind = driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
        modes = (
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        flags = [int(mode) for mode in modes]
        error = encoder()(self.address, int(kind), 2, pointer, sizes, strides, box, steps, *flags)
        check(driver.CUresult(error))


def grid(m: int, n: int, variant: Variant, multiprocessors: int) -> int:
    """Blocks to launch: one per tile; for persistent kernels at most one per multiprocessor, in whole clusters."""
    tiles = -(-m // (variant.bm * variant.cluster)) * -(-n // variant.bn)
    return min(tiles, multiprocessors // variant.cluster) * variant.cluster if variant.stages else tiles


class Plan:
    """A launch with all but the stream fixed: kernel, grid and arguments (which the driver copies at each launch)."""

    def __init__(self, device: int, variant: Variant, pointers: Triple, size: Triple) -> None:
        (a, b, c), (m, n, k) = pointers, size
        self.kernel = loaded(device, variant)  # kept: it owns the code
        self.function = driver.CUfunction(int(self.kernel.handle))
        self.blocks = grid(m, n, variant, torch.cuda.get_device_properties(device).multi_processor_count)
        self.threads, self.shared_bytes = variant.threads, variant.shared_bytes
        if variant.stages:
            self.maps = TensorMap(a, m, k, variant.bm), TensorMap(b, n, k, variant.bn // variant.cluster)
            addresses = [item.address for item in self.maps]
            words = [c, m, n, k, BAND]
        else:
            addresses, words = [], [a, b, c, m, n, k]
        self.words = (ctypes.c_int64 * len(words))(*words)
        base = ctypes.addressof(self.words)
        addresses += [base + 8 * i for i in range(len(words))]
        self.arguments = (ctypes.c_void_p * len(addresses))(*addresses)

    def launch(self, stream: int) -> None:
        """Launch on the stream with this handle. RuntimeError if the driver refuses."""
        arguments = ctypes.addressof(self.arguments)
        blocks, threads, shared = self.blocks, self.threads, self.shared_bytes
        check(*driver.cuLaunchKernel(self.function, blocks, 1, 1, threads, 1, 1, shared, stream, arguments, 0))


plan = lru_cache(maxsize=1024)(Plan)


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """Write a @ b.T into c; a (m, k), b (n, k), c (m, n), all bfloat16; float32 accumulation, rounded once."""
    m, k = a.shape
    n = b.shape[0]
    if m == 0 or n == 0:
        return
    pointers = a.data_ptr(), b.data_ptr(), c.data_ptr()
    variant = choose(m, k, (pointers[0] | pointers[1]) % 16 == 0)
    device = a.device.index
    plan(device, variant, pointers, (m, n, k)).launch(torch._C._cuda_getCurrentRawStream(device))
