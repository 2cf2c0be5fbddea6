# /// script
# dependencies = ["cuda-core>=1.0", "cuda-bindings>=13", "torch>=2.8"]
# [tool.kernelci]
# reference = "rmsnorm"
# backend = "cuda"
# entry = "rmsnorm"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
"""Residual add and RMS norm in CUDA C++ (NVRTC): h = x + residual stays in registers, so that each byte moves once.

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
from cuda.core import Kernel, LaunchConfig, ObjectCode, Program, ProgramOptions, Stream, launch

TYPES = {torch.float32: "Float32", torch.float16: "Float16", torch.bfloat16: "BFloat16"}
HELD = 8  # elements of a row in one thread's registers
WARP_HELD = 16  # the same where one warp holds the whole row
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
            return f"rmsnorm_streamed<{kind}, {self.width}, {self.threads}>"
        return f"rmsnorm_held<{kind}, {self.width}, {self.count}, {self.threads}>"

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
    """Yield the cubin that `rmsnorm` launches for aligned tensors of this case, built for `target`."""
    yield build(target, choose(case.cols, case.dtype, aligned=True))


def arch_of(device: int) -> str:
    """The device's target; 9.0 and up have features of their own behind the suffix "a"."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}" + ("a" if (major, minor) in ((9, 0), (10, 0)) else "")


@lru_cache(maxsize=256)
def loaded(device: int, variant: Variant) -> Kernel:
    """The kernel of one variant, ready to launch on `device`."""
    return build(arch_of(device), variant).get_kernel(variant.expression)


@lru_cache(maxsize=256)
def stream_of(handle: int) -> Stream:
    """cuda-core's view of torch's stream."""
    return Stream.from_handle(handle)


@lru_cache(maxsize=4096)
def config_of(rows: int, variant: Variant) -> LaunchConfig:
    """One block per row, or per `rows_per_block` rows."""
    return LaunchConfig(grid=-(-rows // variant.rows_per_block), block=(variant.threads, variant.rows_per_block))


def rmsnorm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
    y: torch.Tensor,
    residual_out: torch.Tensor,
) -> None:
    """Write h = x + residual into residual_out and h / sqrt(mean(h**2) + eps) * weight into y.

    x, residual, y, residual_out are (rows, cols), weight is (cols,), all of one dtype: float32, float16 or bfloat16.
    """
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return
    pointers = [tensor.data_ptr() for tensor in (x, residual, weight, y, residual_out)]
    variant = choose(cols, x.dtype, all(pointer % 16 == 0 for pointer in pointers))
    device = x.device.index
    stream = stream_of(torch._C._cuda_getCurrentRawStream(device))
    launch(stream, config_of(rows, variant), loaded(device, variant), *pointers, rows, cols, float(eps))
