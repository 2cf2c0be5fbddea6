# /// script
# dependencies = ["tilelang>=0.1.15"]
# [tool.kernelci]
# reference = "rmsnorm"
# backend = "tilelang"
# entry = "rmsnorm"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
"""Residual add and RMSNorm in one pass in TileLang: h = x + residual, y = h / sqrt(mean(h**2) + eps) * weight.

Tensors are seen as (rows, groups, width), where `width` neighbouring columns are one 16-byte vector: so the compiler
can prove that vectors are aligned, although both sizes are dynamic. A row that fits in registers is read once. Longer
rows are read twice, since y needs the sum before its rounding. Odd sizes and pointers have width 1.
"""

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import tilelang
import tilelang.language as T  # noqa: N812
import torch

TILE = 2048  # elements of a program's tile while rows are short
MIN_BLOCK = 256  # fewer builds for short rows
MAX_BLOCK = 16384  # longest row held in registers
PER_THREAD = 16  # elements of a long block that each thread holds: h and both inputs live at once
LANES = 1024  # groups that a program loads at a time from a long row
ROW_THREADS = 512
VECTOR_BYTES = 16
TRACED = "KERNELCI_TRACE" in os.environ  # a build for kernelci's trace, which gives the marks their meaning


@T.macro
def mark(name: str) -> None:
    """Tell the trace where a region begins or ends; nothing in any other build."""
    if TRACED:
        T.evaluate(T.call_extern("handle", f"KERNELCI_{name}"))


def _quotient(h: Any, root: Any, dtype: str) -> Any:
    """h / root; a true division only where a 16-bit rounding does not hide its absence."""
    return h / root if dtype == "float32" else h * (1.0 / root)


def tile_program(dtype: str, width: int, block: int) -> Any:
    """Program for whole rows of at most `block` columns, several of them while they are short."""
    rows, groups = T.dynamic("rows"), T.dynamic("groups")
    height, lanes = max(1, TILE // block), block // width
    threads = min(1024, max(128, block // PER_THREAD))
    shape = (rows, groups, width)

    @T.prim_func
    def rmsnorm_tile(
        x: T.Tensor(shape, dtype),
        residual: T.Tensor(shape, dtype),
        weight: T.Tensor((groups, width), dtype),
        eps: T.float32,
        y: T.Tensor(shape, dtype),
        residual_out: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(rows, height), threads=threads) as program:
            h = T.alloc_fragment((height, lanes, width), "float32")
            left = T.alloc_fragment((height, lanes, width), dtype)
            right = T.alloc_fragment((height, lanes, width), dtype)
            gain = T.alloc_fragment((height, lanes, width), dtype)
            squares = T.alloc_fragment((height, lanes, width), "float32")
            partial = T.alloc_fragment((height, lanes), "float32")
            root = T.alloc_fragment((height,), "float32")
            mark("BEGIN_load")
            for r, g, w in T.Parallel(height, lanes, width):
                inside = (program * height + r < rows) & (g < groups)
                left[r, g, w] = T.if_then_else(inside, x[program * height + r, g, w], T.cast(0, dtype))
            for r, g, w in T.Parallel(height, lanes, width):
                inside = (program * height + r < rows) & (g < groups)
                right[r, g, w] = T.if_then_else(inside, residual[program * height + r, g, w], T.cast(0, dtype))
            for r, g, w in T.Parallel(height, lanes, width):
                gain[r, g, w] = T.if_then_else(g < groups, weight[g, w], T.cast(0, dtype))
            for r, g, w in T.Parallel(height, lanes, width):
                h[r, g, w] = T.cast(left[r, g, w], "float32") + T.cast(right[r, g, w], "float32")
            for r, g, w in T.Parallel(height, lanes, width):
                if (program * height + r < rows) & (g < groups):
                    residual_out[program * height + r, g, w] = T.cast(h[r, g, w], dtype)
            mark("END_load")  # the stores of h have waited for all of x and residual
            mark("BEGIN_compute")
            for r, g, w in T.Parallel(height, lanes, width):
                squares[r, g, w] = h[r, g, w] * h[r, g, w]
            T.reduce_sum(squares, partial, dim=2)
            T.reduce_sum(partial, root, dim=1)
            for r in T.Parallel(height):
                root[r] = T.sqrt(root[r] / T.cast(groups * width, "float32") + eps)
            mark("END_compute")
            mark("BEGIN_epilogue")
            for r, g, w in T.Parallel(height, lanes, width):
                if (program * height + r < rows) & (g < groups):
                    normal = _quotient(h[r, g, w], root[r], dtype)
                    y[program * height + r, g, w] = T.cast(normal * T.cast(gain[r, g, w], "float32"), dtype)
            mark("END_epilogue")

    return rmsnorm_tile


def row_program(dtype: str, width: int) -> Any:
    """Program for one row of any length, LANES groups at a time."""
    rows, groups = T.dynamic("rows"), T.dynamic("groups")
    shape = (rows, groups, width)

    @T.prim_func
    def rmsnorm_row(
        x: T.Tensor(shape, dtype),
        residual: T.Tensor(shape, dtype),
        weight: T.Tensor((groups, width), dtype),
        eps: T.float32,
        y: T.Tensor(shape, dtype),
        residual_out: T.Tensor(shape, dtype),
    ):
        with T.Kernel(rows, threads=ROW_THREADS) as row:
            h = T.alloc_fragment((LANES, width), "float32")
            left = T.alloc_fragment((LANES, width), dtype)
            right = T.alloc_fragment((LANES, width), dtype)
            squares = T.alloc_fragment((LANES, width), "float32")
            partial = T.alloc_fragment((LANES,), "float32")
            root = T.alloc_fragment((1,), "float32")
            T.fill(squares, 0.0)
            for step in T.serial(T.ceildiv(groups, LANES)):
                first = step * LANES
                mark("BEGIN_load")
                for g, w in T.Parallel(LANES, width):
                    left[g, w] = T.if_then_else(first + g < groups, x[row, first + g, w], T.cast(0, dtype))
                for g, w in T.Parallel(LANES, width):
                    right[g, w] = T.if_then_else(first + g < groups, residual[row, first + g, w], T.cast(0, dtype))
                for g, w in T.Parallel(LANES, width):
                    h[g, w] = T.cast(left[g, w], "float32") + T.cast(right[g, w], "float32")
                    squares[g, w] = squares[g, w] + h[g, w] * h[g, w]
                for g, w in T.Parallel(LANES, width):
                    if first + g < groups:
                        residual_out[row, first + g, w] = T.cast(h[g, w], dtype)
                mark("END_load")
            mark("BEGIN_compute")
            T.reduce_sum(squares, partial, dim=1)
            T.reduce_sum(partial, root, dim=0)
            root[0] = T.sqrt(root[0] / T.cast(groups * width, "float32") + eps)
            mark("END_compute")
            mark("BEGIN_epilogue")
            for step in T.serial(T.ceildiv(groups, LANES)):
                # Backwards: what the first pass read last is still in a cache.
                first = (T.ceildiv(groups, LANES) - 1 - step) * LANES
                for g, w in T.Parallel(LANES, width):
                    if first + g < groups:
                        again = T.cast(x[row, first + g, w], "float32") + T.cast(residual[row, first + g, w], "float32")
                        gain = T.cast(weight[first + g, w], "float32")
                        y[row, first + g, w] = T.cast(_quotient(again, root[0], dtype) * gain, dtype)
            mark("END_epilogue")

    return rmsnorm_row


@cache
def _build(dtype: torch.dtype, width: int, block: int, target: str) -> Any:
    """The compiled kernel for rows of at most `block` columns, or of any length where `block` is 0."""
    name = str(dtype).removeprefix("torch.")
    program = tile_program(name, width, block) if block else row_program(name, width)
    return tilelang.compile(program, target={"kind": "cuda", "arch": target})


def _width(dtype: torch.dtype, cols: int, *addresses: int) -> int:
    """Columns in a vector: 16 bytes where every row of every tensor starts at a multiple of that, else one column."""
    aligned = all(address % VECTOR_BYTES == 0 for address in (cols * dtype.itemsize, *addresses))
    return VECTOR_BYTES // dtype.itemsize if aligned else 1


def _block(cols: int, width: int) -> int:
    """Block for a row: a power of two that holds it, or 0 where it doesn't fit or would be read element by element."""
    if width == 1 or cols > MAX_BLOCK:
        return 0
    return max(MIN_BLOCK, 1 << (cols - 1).bit_length())


def _target() -> str:
    """Architecture of the current device; from Hopper on, with its own features."""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def rmsnorm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
    y: torch.Tensor,
    residual_out: torch.Tensor,
) -> None:
    """Write `y` and `residual_out` (h rounded); all (rows, cols) but weight (cols,), contiguous, one floating dtype."""
    rows, cols = x.shape
    if x.numel() == 0:
        return
    width = _width(x.dtype, cols, *(tensor.data_ptr() for tensor in (x, residual, weight, y, residual_out)))
    shape = (rows, cols // width, width)
    kernel = _build(x.dtype, width, _block(cols, width), _target())
    kernel(x.view(shape), residual.view(shape), weight.view(shape[1:]), eps, y.view(shape), residual_out.view(shape))


def compile(case: Any, target: str) -> Iterator[Any]:
    """Yield the build that serves `case` (rows, cols, dtype) when its tensors are aligned."""
    width = _width(case.dtype, case.cols)
    yield _build(case.dtype, width, _block(case.cols, width), target)
