# /// script
# dependencies = ["tilelang>=0.1.15"]
# [tool.kernelci]
# reference = "matmul"
# backend = "tilelang"
# entry = "matmul"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "wait", "compute", "epilogue"]
# ///
"""Matrix product c = a @ b.T in TileLang, bfloat16 with float32 accumulation.

One source for all: `T.Pipelined` copies tiles ahead and `T.gemm` multiplies them. On Hopper the compiler makes of it a
producer warpgroup that loads through the tensor memory accelerator and consumers that issue wgmma; on Ampere, cp.async
and mma.sync; on Blackwell, bulk loads and mma.sync. Row lengths are `groups * width`, so that 16-byte vectors are
provably aligned where width is 8; odd sizes and pointers take a build of width 1 that reads element by element.
"""

import os
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import tilelang
import tilelang.language as T  # noqa: N812
import torch

VECTOR_BYTES = 16
RASTER = 10  # tile rows walked together, so that concurrent programs share rows of a and b in the L2 cache
TRACED = "KERNELCI_TRACE" in os.environ  # a build for kernelci's trace, which gives the marks their meaning


@T.macro
def mark(name: str) -> None:
    """Tell the trace where a region begins or ends; nothing in any other build."""
    if TRACED:
        T.evaluate(T.call_extern("handle", f"KERNELCI_{name}"))


class Config(NamedTuple):
    """Tile of c, depth of a step along k, steps in flight, consuming threads, and whether c leaves by shared memory."""

    tile_m: int
    tile_n: int
    tile_k: int
    stages: int
    threads: int
    staged: bool


LARGE = Config(128, 256, 64, 3, 256, True)
SMALL = Config(64, 32, 128, 5, 128, True)  # few rows: bound by reading b, so many programs share the work
# Without bulk copies the compiler can't count more than two steps in flight when k is dynamic.
AMPERE = Config(128, 128, 32, 2, 128, False)
GENERIC = Config(128, 128, 32, 2, 256, False)


def program(config: Config, width: int) -> Any:
    """Program for one tile of c; row lengths are dynamic multiples of `width`. Tails read zeros and aren't stored."""
    tile_m, tile_n, tile_k, stages, threads, staged = config
    m, n, k_groups, n_groups = T.dynamic("m"), T.dynamic("n"), T.dynamic("k_groups"), T.dynamic("n_groups")
    dtype = "bfloat16"

    @T.prim_func
    def matmul(
        a: T.Tensor((m, k_groups * width), dtype),
        b: T.Tensor((n, k_groups * width), dtype),
        c: T.Tensor((m, n_groups * width), dtype),
    ):
        with T.Kernel(T.ceildiv(n, tile_n), T.ceildiv(m, tile_m), threads=threads) as (col, row):
            left = T.alloc_shared((tile_m, tile_k), dtype)
            right = T.alloc_shared((tile_n, tile_k), dtype)
            sums = T.alloc_fragment((tile_m, tile_n), "float32")
            T.use_swizzle(RASTER)
            T.clear(sums)
            mark("BEGIN_compute")
            for step in T.Pipelined(T.ceildiv(k_groups * width, tile_k), num_stages=stages):
                T.copy(a[row * tile_m, step * tile_k], left)
                T.copy(b[col * tile_n, step * tile_k], right)
                # FullRow: a warpgroup takes whole rows of the tile, so wgmma is as wide as it gets.
                T.gemm(left, right, sums, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            mark("END_compute")
            mark("BEGIN_epilogue")
            if staged:
                out = T.alloc_shared((tile_m, tile_n), dtype)
                T.copy(sums, out)
                T.copy(out, c[row * tile_m, col * tile_n])
            else:
                T.copy(sums, c[row * tile_m, col * tile_n])
            mark("END_epilogue")

    return matmul


@cache
def _build(config: Config, width: int, target: str) -> Any:
    """The compiled kernel; bulk copies, which need aligned rows, are off where width is 1."""
    options = {} if width > 1 else {"tl.disable_tma_lower": True, "tl.disable_warp_specialized": True}
    return tilelang.compile(program(config, width), target={"kind": "cuda", "arch": target}, pass_configs=options)


def _width(k: int, n: int, itemsize: int, *addresses: int) -> int:
    """Columns in a vector: 16 bytes where every row of every tensor starts at a multiple of that, else one column."""
    aligned = all(address % VECTOR_BYTES == 0 for address in (k * itemsize, n * itemsize, *addresses))
    return VECTOR_BYTES // itemsize if aligned else 1


def _choose(m: int, width: int, target: str) -> Config:
    """The build for a product of `m` rows."""
    if width == 1:
        return GENERIC
    if not target.endswith("a"):
        return AMPERE
    return SMALL if m <= SMALL.tile_m else LARGE


def _target() -> str:
    """Architecture of the current device; from Hopper on, with its own features."""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """Write a @ b.T to `c`: a (m, k), b (n, k), c (m, n), contiguous, bfloat16."""
    (m, k), n = a.shape, b.shape[0]
    if c.numel() == 0:
        return
    if k == 0:
        c.zero_()
        return
    width, target = _width(k, n, a.element_size(), a.data_ptr(), b.data_ptr(), c.data_ptr()), _target()
    _build(_choose(m, width, target), width, target)(a, b, c)


def compile(case: Any, target: str) -> Iterator[Any]:
    """Yield the build that serves `case` (m, n, k) when its tensors are aligned."""
    width = _width(case.k, case.n, torch.bfloat16.itemsize)
    yield _build(_choose(case.m, width, target), width, target)
