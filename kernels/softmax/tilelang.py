# /// script
# dependencies = ["tilelang>=0.1.15"]
# [tool.kernelci]
# reference = "softmax"
# backend = "tilelang"
# entry = "softmax"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
"""Softmax over the last axis in TileLang.

Tensors are seen as (rows, groups, width), where `width` neighbouring columns are one 16-byte vector: so the compiler
can prove that vectors are aligned, although both sizes are dynamic. A row that fits in registers is read once. Longer
rows are read twice, with a running maximum and sum per group in the first pass. Odd sizes and pointers have width 1.
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
MAX_BLOCK = 32768  # longest row held in registers: 32 elements for each of 1024 threads
PER_THREAD = 32  # elements of a long block that each thread holds
LANES = 1024  # groups that a program loads at a time from a long row
ROW_THREADS = 512
VECTOR_BYTES = 16
TRACED = "KERNELCI_TRACE" in os.environ  # a build for kernelci's trace, which gives the marks their meaning


@T.macro
def mark(name: str) -> None:
    """Tell the trace where a region begins or ends; nothing in any other build."""
    if TRACED:
        T.evaluate(T.call_extern("handle", f"KERNELCI_{name}"))


def tile_program(dtype: str, width: int, block: int) -> Any:
    """Program for whole rows of at most `block` columns, several of them while they are short."""
    rows, groups = T.dynamic("rows"), T.dynamic("groups")
    height, lanes = max(1, TILE // block), block // width
    threads = min(1024, max(128, block // PER_THREAD))
    shape = (rows, groups, width)

    @T.prim_func
    def softmax_tile(x: T.Tensor(shape, dtype), y: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(rows, height), threads=threads) as program:
            values = T.alloc_fragment((height, lanes, width), "float32")
            partial = T.alloc_fragment((height, lanes), "float32")
            peak = T.alloc_fragment((height,), "float32")
            total = T.alloc_fragment((height,), "float32")
            mark("BEGIN_load")
            for r, g, w in T.Parallel(height, lanes, width):
                values[r, g, w] = T.if_then_else(
                    (program * height + r < rows) & (g < groups),
                    T.cast(x[program * height + r, g, w], "float32"),
                    -T.infinity("float32"),
                )
            T.reduce_max(values, partial, dim=2)
            T.reduce_max(partial, peak, dim=1)
            mark("END_load")  # threads have exchanged their maxima, and so waited for all of the row
            mark("BEGIN_compute")
            for r, g, w in T.Parallel(height, lanes, width):
                values[r, g, w] = T.exp(values[r, g, w] - peak[r])
            T.reduce_sum(values, partial, dim=2)
            T.reduce_sum(partial, total, dim=1)
            for r in T.Parallel(height):
                total[r] = 1.0 / total[r]
            mark("END_compute")
            mark("BEGIN_epilogue")
            for r, g, w in T.Parallel(height, lanes, width):
                if (program * height + r < rows) & (g < groups):
                    y[program * height + r, g, w] = T.cast(values[r, g, w] * total[r], dtype)
            mark("END_epilogue")

    return softmax_tile


def row_program(dtype: str, width: int) -> Any:
    """Program for one row of any length, LANES groups at a time."""
    rows, groups = T.dynamic("rows"), T.dynamic("groups")
    shape = (rows, groups, width)

    @T.prim_func
    def softmax_row(x: T.Tensor(shape, dtype), y: T.Tensor(shape, dtype)):
        with T.Kernel(rows, threads=ROW_THREADS) as row:
            values = T.alloc_fragment((LANES, width), "float32")
            partial = T.alloc_fragment((LANES,), "float32")
            higher = T.alloc_fragment((LANES,), "float32")
            peak = T.alloc_fragment((LANES,), "float32")
            total = T.alloc_fragment((LANES,), "float32")
            top = T.alloc_fragment((1,), "float32")
            scale = T.alloc_fragment((1,), "float32")
            T.fill(peak, -T.infinity("float32"))
            T.fill(total, 0.0)
            for step in T.serial(T.ceildiv(groups, LANES)):
                mark("BEGIN_load")
                for g, w in T.Parallel(LANES, width):
                    values[g, w] = T.if_then_else(
                        step * LANES + g < groups,
                        T.cast(x[row, step * LANES + g, w], "float32"),
                        -T.infinity("float32"),
                    )
                mark("END_load")
                mark("BEGIN_compute")
                T.reduce_max(values, partial, dim=1)
                for g in T.Parallel(LANES):
                    # While all is -inf the maximum is no reference point: -inf - -inf would be NaN.
                    higher[g] = T.max(peak[g], partial[g])
                    partial[g] = T.if_then_else(higher[g] == -T.infinity("float32"), 0.0, higher[g])
                    total[g] = total[g] * T.exp(peak[g] - partial[g])
                    peak[g] = higher[g]
                for g, w in T.Parallel(LANES, width):
                    values[g, w] = T.exp(values[g, w] - partial[g])
                T.reduce_sum(values, partial, dim=1)
                for g in T.Parallel(LANES):
                    total[g] = total[g] + partial[g]
                mark("END_compute")
            mark("BEGIN_compute")
            T.reduce_max(peak, top, dim=0)
            for g in T.Parallel(LANES):
                total[g] = T.if_then_else(total[g] == 0.0, 0.0, total[g] * T.exp(peak[g] - top[0]))
            T.reduce_sum(total, scale, dim=0)
            scale[0] = 1.0 / scale[0]
            mark("END_compute")
            mark("BEGIN_epilogue")
            for step in T.serial(T.ceildiv(groups, LANES)):
                # Backwards: what the first pass read last is still in a cache.
                first = (T.ceildiv(groups, LANES) - 1 - step) * LANES
                for g, w in T.Parallel(LANES, width):
                    if first + g < groups:
                        power = T.exp(T.cast(x[row, first + g, w], "float32") - top[0])
                        y[row, first + g, w] = T.cast(power * scale[0], dtype)
            mark("END_epilogue")

    return softmax_row


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


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Write the softmax of each row of `x` to `y`; both (rows, cols), contiguous, one floating dtype."""
    rows, cols = x.shape
    if x.numel() == 0:
        return
    width = _width(x.dtype, cols, x.data_ptr(), y.data_ptr())
    shape = (rows, cols // width, width)
    _build(x.dtype, width, _block(cols, width), _target())(x.view(shape), y.view(shape))


def compile(case: Any, target: str) -> Iterator[Any]:
    """Yield the build that serves `case` (rows, cols, dtype) when its tensors are aligned."""
    width = _width(case.dtype, case.cols)
    yield _build(case.dtype, width, _block(case.cols, width), target)
