# /// script
# dependencies = ["triton>=3.6"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
"""Softmax over the last axis in Triton.

A row that fits in registers is read once: a program takes a tile of whole rows, as many as make a tile worth loading.
A longer row is read twice: the first pass keeps a running maximum and sum for each group of neighbouring columns,
the second pass runs backwards, so that it begins with what the first has just left in the L2 cache.
"""

# ruff: noqa: N803 (compile-time parameters are in capitals)

import torch
import triton
import triton.language as tl
import triton.profiler.language as pl

pl.enable_semantic("triton")  # its scopes name regions, for traces; elsewhere they leave nothing in the machine code

TILE = 2048  # elements of a program's tile while rows are short
MIN_BLOCK = 16  # fewer builds for tiny rows
MAX_BLOCK = 32768  # longest row held in registers: 32 elements for each of 1024 threads
CHUNK = 8192  # columns that one program loads at a time from a long row
CHUNK_WARPS = 16
GROUP = 8  # neighbouring columns that share a running maximum: 16 bytes of a 16-bit type, so one thread's load


@triton.jit(do_not_specialize=["rows"])
def softmax_tile(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """One program: ROWS whole rows of at most BLOCK columns."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (first + row < rows) & (col < cols)
    offset = first * cols + (row * cols + col)
    # Rows past the end hold zeros: they are never stored, and -inf would make NaN of them.
    fill = tl.where(first + row < rows, float("-inf"), 0.0)
    with pl.scope("load"):  # with the maximum, which waits for all of the row
        values = tl.where(col < cols, tl.load(x + offset, mask=inside, other=0.0).to(tl.float32), fill)
        peak = tl.max(values, axis=1)
    with pl.scope("compute"):
        powers = tl.exp(values - peak[:, None])
        result = powers / tl.sum(powers, axis=1)[:, None]
    with pl.scope("epilogue"):
        tl.store(y + offset, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_row(x, y, cols, CHUNK: tl.constexpr, GROUP: tl.constexpr):
    """One program: one row of any length, in chunks of CHUNK columns."""
    start = tl.program_id(0).to(tl.int64) * cols
    x += start
    y += start
    lanes: tl.constexpr = CHUNK // GROUP
    within = tl.arange(0, lanes)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    peak = tl.full((lanes,), float("-inf"), tl.float32)
    total = tl.zeros((lanes,), tl.float32)
    for begin in range(0, cols, CHUNK):
        col = begin + within
        with pl.scope("load"):
            values = tl.load(x + col, mask=col < cols, other=float("-inf")).to(tl.float32)
            higher = tl.maximum(peak, tl.max(values, axis=1))
        with pl.scope("compute"):
            # While all is -inf the maximum is no reference point: -inf - -inf would be NaN.
            origin = tl.where(higher == float("-inf"), 0.0, higher)
            total = total * tl.exp(peak - origin) + tl.sum(tl.exp(values - origin[:, None]), axis=1)
            peak = higher
    with pl.scope("compute"):
        top = tl.max(peak, axis=0)
        scale = tl.sum(tl.where(total == 0.0, 0.0, total * tl.exp(peak - top)), axis=0)
    chunks = tl.cdiv(cols, CHUNK)
    for step in range(chunks):
        with pl.scope("epilogue"):
            col = (chunks - 1 - step) * CHUNK + within
            values = tl.load(x + col, mask=col < cols, other=float("-inf")).to(tl.float32)
            result = tl.exp(values - top) / scale
            tl.store(y + col, result.to(y.dtype.element_ty), mask=col < cols)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Write the softmax of each row of `x` to `y`; both (rows, cols), contiguous, one floating dtype."""
    rows, cols = x.shape
    if x.numel() == 0:
        return
    block = max(MIN_BLOCK, triton.next_power_of_2(cols))
    if block > MAX_BLOCK:
        softmax_row[(rows,)](x, y, cols, CHUNK, GROUP, num_warps=CHUNK_WARPS)
        return
    per_program = max(1, TILE // block)
    warps = min(32, max(4, block // 1024))
    softmax_tile[(triton.cdiv(rows, per_program),)](x, y, rows, cols, per_program, block, num_warps=warps)
