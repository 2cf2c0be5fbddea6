# /// script
# dependencies = ["cuda-core>=1.0", "cuda-bindings>=13", "torch>=2.8"]
# [tool.kernelci]
# reference = "softmax"
# backend = "cuda"
# entry = "softmax"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
"""Softmax over rows in CUDA C++ (NVRTC): the row stays in registers, so that memory sees one read and one write.

A warp takes a short row, a block a longer one, with 16-byte accesses where pointers and row length allow them and
single elements elsewhere; rows that fit no block's registers are read twice. A build depends on the dtype and on the
power of two of threads, never on the exact shape.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import torch
from cuda.bindings import driver
from cuda.core import Kernel, LaunchConfig, ObjectCode, Program, ProgramOptions, Stream, launch

TYPES = {torch.float32: "Float32", torch.float16: "Float16", torch.bfloat16: "BFloat16"}
HELD = 32  # elements of a row in one thread's registers
WARP_HELD = 32  # the same where one warp holds the whole row
THREADS_MAX = 1024
BLOCK_THREADS_MIN = 128  # short rows share a block, one warp each


class Case(Protocol):
    """What `compile` reads of a case."""

    rows: int
    cols: int
    dtype: torch.dtype


@dataclass(frozen=True)
class Variant:
    """One build: `width` elements per access, `count` accesses per thread (0: streamed), `threads` per row."""

    dtype: torch.dtype
    width: int
    count: int
    threads: int

    @property
    def expression(self) -> str:
        """The C++ name of the kernel."""
        kind = TYPES[self.dtype]
        if self.count == 0:
            return f"softmax_streamed<{kind}, {self.width}, {self.threads}>"
        return f"softmax_held<{kind}, {self.width}, {self.count}, {self.threads}>"

    @property
    def rows_per_block(self) -> int:
        """Rows that share one block."""
        return BLOCK_THREADS_MIN // 32 if self.count and self.threads == 32 else 1


def power_of_two(x: int) -> int:
    """The smallest power of two that is at least x."""
    return 1 << max(x - 1, 0).bit_length()


@lru_cache(maxsize=4096)
def choose(cols: int, dtype: torch.dtype, aligned: bool) -> Variant:
    """The build for rows of `cols` elements whose pointers are multiples of 16 bytes (`aligned`) or not."""
    width = 16 // dtype.itemsize
    width = width if aligned and cols % width == 0 else 1
    packs = cols // width
    if cols <= 32 * WARP_HELD:
        return Variant(dtype, width, power_of_two(-(-packs // 32)), 32)
    held = HELD if width > 1 else HELD // 2  # single elements need more registers for their addresses
    threads = max(64, power_of_two(-(-cols // held)))
    if threads > THREADS_MAX:
        return Variant(dtype, width, 0, THREADS_MAX)
    return Variant(dtype, width, held // width, threads)


@lru_cache(maxsize=256)
def build(arch: str, variant: Variant) -> ObjectCode:
    """Compile one variant for `arch` ("sm_90a"); needs no GPU."""
    source = Path(__file__).with_suffix(".cu")
    options = ProgramOptions(name=str(source), arch=arch, std="c++17", lineinfo=True)
    return Program(source.read_text(), "c++", options).compile("cubin", name_expressions=(variant.expression,))


def compile(case: Case, target: str) -> Iterator[ObjectCode]:
    """Yield the cubin that `softmax` launches for aligned tensors of this case, built for `target`."""
    yield build(target, choose(case.cols, case.dtype, aligned=True))


def arch_of(device: int) -> str:
    """The device's target; 9.0 and up have features of their own behind the suffix "a"."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}" + ("a" if (major, minor) in ((9, 0), (10, 0)) else "")


def check(error: driver.CUresult) -> None:
    """Raise RuntimeError for a failed driver call."""
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA driver: {error.name}")


@lru_cache(maxsize=256)
def loaded(device: int, variant: Variant) -> Kernel:
    """The kernel of one variant, ready to launch on `device`; a streamed one may use all of the shared memory."""
    kernel = build(arch_of(device), variant).get_kernel(variant.expression)
    if variant.count == 0:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(*driver.cuKernelSetAttribute(attribute, keep_bytes(device), kernel.handle, driver.CUdevice(device)))
    return kernel


@lru_cache(maxsize=16)
def keep_bytes(device: int) -> int:
    """Dynamic shared memory of a streamed block: all that a block may have, less room for its static part."""
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    error, limit = driver.cuDeviceGetAttribute(attribute, driver.CUdevice(device))
    check(error)
    return int(limit) - 1024


@lru_cache(maxsize=256)
def stream_of(handle: int) -> Stream:
    """cuda-core's view of torch's stream."""
    return Stream.from_handle(handle)


@lru_cache(maxsize=4096)
def config_of(device: int, rows: int, variant: Variant) -> LaunchConfig:
    """One block per row, or per `rows_per_block` rows."""
    shared = 0 if variant.count else keep_bytes(device)
    block = (variant.threads, variant.rows_per_block)
    return LaunchConfig(grid=-(-rows // variant.rows_per_block), block=block, shmem_size=shared)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Write softmax(x) over the last axis into y; both (rows, cols) of one dtype: float32, float16 or bfloat16."""
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return
    source, target = x.data_ptr(), y.data_ptr()
    variant = choose(cols, x.dtype, (source | target) % 16 == 0)
    device = x.device.index
    config = config_of(device, rows, variant)
    kept = () if variant.count else (config.shmem_size // (variant.width * x.dtype.itemsize),)
    stream = stream_of(torch._C._cuda_getCurrentRawStream(device))
    launch(stream, config, loaded(device, variant), source, target, rows, cols, *kept)
