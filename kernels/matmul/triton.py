# /// script
# dependencies = ["triton>=3.6"]
# [tool.kernelci]
# reference = "matmul"
# backend = "triton"
# entry = "matmul"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
"""Matrix product c = a @ b.T in Triton, with float32 accumulation.

From Hopper on, operands that the tensor memory accelerator can address are read through descriptors by a persistent
grid: one program per SM walks over tiles of c, and the next tile's loads start while the last is being stored. The
rest, odd strides and unaligned pointers included, takes the pointer kernel, whose loads and stores are masked.
"""

# ruff: noqa: N803 (compile-time parameters are in capitals)

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
import triton.profiler.language as pl
from triton.tools.tensor_descriptor import TensorDescriptor

pl.enable_semantic("triton")  # its scopes name regions, for traces; elsewhere they leave nothing in the machine code

GROUP_M = 8  # tile rows walked together, so that concurrent programs share rows of a and b in the L2 cache


class Config(NamedTuple):
    """Tile of c, depth of a step along k, steps in flight, and warps of a program."""

    block_m: int
    block_n: int
    block_k: int
    stages: int
    warps: int


LARGE = Config(128, 256, 64, 3, 8)
MEDIUM = Config(128, 128, 64, 4, 8)
SMALL = Config(64, 32, 128, 5, 4)  # few rows: bound by reading b, so as many programs as possible share the work
GENERIC = Config(128, 128, 64, 3, 8)


@triton.jit
def _tile_position(tile, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """Row and column of a tile index, walking down GROUP_M tile rows before moving one tile column on."""
    tiles_m = tl.cdiv(m, BLOCK_M)
    per_group = GROUP_M * tl.cdiv(n, BLOCK_N)
    first = tile // per_group * GROUP_M
    height = min(tiles_m - first, GROUP_M)
    return first + tile % per_group % height, tile % per_group // height


@triton.jit
def matmul_descriptor(
    a,
    b,
    c,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    FLATTEN: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Persistent: a program takes every num_programs-th tile. Descriptors read zeros and drop stores out of bounds."""
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    step = tl.num_programs(0)
    for tile in tl.range(tl.program_id(0), tiles, step, flatten=FLATTEN):
        tile_m, tile_n = _tile_position(tile, m, n, BLOCK_M, BLOCK_N, GROUP_M)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for depth in range(tl.cdiv(k, BLOCK_K)):
            with pl.scope("load"):  # the wait for a stage; what fills it was started some iterations before
                left = a.load([tile_m * BLOCK_M, depth * BLOCK_K])
                right = b.load([tile_n * BLOCK_N, depth * BLOCK_K])
            with pl.scope("compute"):
                accumulator = tl.dot(left, right.T, accumulator)
        # Storing in parts needs less shared memory for staging, which leaves room for another step in flight.
        with pl.scope("epilogue"):
            if PARTS == 2:
                halves = accumulator.reshape((BLOCK_M, 2, BLOCK_N // 2)).permute((0, 2, 1))
                low, high = tl.split(halves)
                c.store([tile_m * BLOCK_M, tile_n * BLOCK_N], low.to(c.dtype))
                c.store([tile_m * BLOCK_M, tile_n * BLOCK_N + BLOCK_N // 2], high.to(c.dtype))
            else:
                c.store([tile_m * BLOCK_M, tile_n * BLOCK_N], accumulator.to(c.dtype))


@triton.jit
def matmul_pointer(
    a,
    b,
    c,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One program: one tile of c, any size and alignment."""
    tile_m, tile_n = _tile_position(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP_M)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    # Rows past the end read row 0 instead: they only reach parts of the tile that are never stored.
    left = a + tl.where(row < m, row, 0).to(tl.int64)[:, None] * k + depth[None, :]
    right = b + tl.where(col < n, col, 0).to(tl.int64)[None, :] * k + depth[:, None]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for begin in range(0, k, BLOCK_K):
        inside = begin + depth < k
        with pl.scope("load"):
            x = tl.load(left + begin, mask=inside[None, :], other=0.0)
            y = tl.load(right + begin, mask=inside[:, None], other=0.0)
        with pl.scope("compute"):
            accumulator = tl.dot(x, y, accumulator, input_precision=PRECISION)
    with pl.scope("epilogue"):
        target = c + row.to(tl.int64)[:, None] * n + col[None, :]
        tl.store(target, accumulator.to(c.dtype.element_ty), mask=(row[:, None] < m) & (col[None, :] < n))


def _describable(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> bool:
    """Whether the tensor memory accelerator can address all three: 16-byte aligned starts and rows."""
    aligned = all(tensor.data_ptr() % 16 == 0 for tensor in (a, b, c))
    return aligned and all(tensor.stride(0) * tensor.element_size() % 16 == 0 for tensor in (a, b, c))


def _choose(m: int, n: int, multiprocessors: int) -> Config:
    """The largest tile that still gives every SM one."""
    if m <= SMALL.block_m:
        return SMALL
    large_tiles = triton.cdiv(m, LARGE.block_m) * triton.cdiv(n, LARGE.block_n)
    return LARGE if large_tiles >= multiprocessors else MEDIUM


def launch_descriptor(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    config: Config,
    programs: int,
    flatten: bool = True,
    parts: int = 1,
) -> Any:
    """Launch the persistent kernel on at most `programs` programs; returns what Triton's launch returns."""
    (m, k), n = a.shape, b.shape[0]
    tile_m, tile_n, tile_k, stages, warps = config
    left = TensorDescriptor(a, [m, k], [k, 1], [tile_m, tile_k])
    right = TensorDescriptor(b, [n, k], [k, 1], [tile_n, tile_k])
    target = TensorDescriptor(c, [m, n], [n, 1], [tile_m, tile_n // parts])
    grid = (min(programs, triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)),)
    blocks = (tile_m, tile_n, tile_k, GROUP_M)
    options = {"num_stages": stages, "num_warps": warps}
    return matmul_descriptor[grid](left, right, target, m, n, k, *blocks, flatten, parts, **options)


def launch_pointer(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, config: Config) -> Any:
    """Launch the masked kernel, one program per tile; returns what Triton's launch returns."""
    (m, k), n = a.shape, b.shape[0]
    tile_m, tile_n, tile_k, stages, warps = config
    grid = (triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)
    blocks = (tile_m, tile_n, tile_k, GROUP_M)
    return matmul_pointer[grid](a, b, c, m, n, k, *blocks, "ieee", num_stages=stages, num_warps=warps)


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """Write a @ b.T to `c`: a (m, k), b (n, k), c (m, n), contiguous, bfloat16 (float16 and float32 work too)."""
    (m, k), n = a.shape, b.shape[0]
    if m == 0 or n == 0:
        return
    if a.is_cuda and k > 0 and a.element_size() == 2 and _describable(a, b, c):
        multiprocessors = torch.cuda.get_device_properties(a.device).multi_processor_count
        if torch.cuda.get_device_capability(a.device)[0] >= 9:
            launch_descriptor(a, b, c, _choose(m, n, multiprocessors), multiprocessors)
            return
    launch_pointer(a, b, c, GENERIC)
