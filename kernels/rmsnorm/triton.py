# /// script
# dependencies = ["triton>=3.6"]
# [tool.kernelci]
# reference = "rmsnorm"
# backend = "triton"
# entry = "rmsnorm"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
"""Residual add and RMSNorm in one pass in Triton: h = x + residual, y = h / sqrt(mean(h**2) + eps) * weight.

A row that fits in registers is read once and both outputs are written from there; a program takes a tile of whole rows.
A longer row is read twice, since y needs the sum before its rounding; the second pass runs backwards, so that it begins
with what the first has just left in the L2 cache.
"""

# ruff: noqa: N803 (compile-time parameters are in capitals)

import torch
import triton
import triton.language as tl
import triton.profiler.language as pl

pl.enable_semantic("triton")  # its scopes name regions, for traces; elsewhere they leave nothing in the machine code

TILE = 1024  # elements of a program's tile while rows are short
MIN_BLOCK = 16  # fewer builds for tiny rows
MAX_BLOCK = 16384  # longest row held in registers: with h and both inputs a longer one spills
CHUNK = 8192  # columns that one program loads at a time from a long row
CHUNK_WARPS = 16


@triton.jit
def _normalized(h, squares, cols, eps, EXACT: tl.constexpr):
    """h / sqrt(squares / cols + eps); a true division only where a 16-bit rounding does not hide its absence."""
    root = tl.sqrt_rn(squares / cols + eps)
    if EXACT:
        return tl.div_rn(h, root.broadcast_to(h.shape))
    return h * (1.0 / root)


@triton.jit(do_not_specialize=["rows"])
def rmsnorm_tile(x, residual, weight, eps, y, residual_out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """One program: ROWS whole rows of at most BLOCK columns."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (first + row < rows) & (col < cols)
    offset = first * cols + (row * cols + col)
    with pl.scope("load"):
        h = tl.load(x + offset, mask=inside, other=0.0).to(tl.float32)
        h += tl.load(residual + offset, mask=inside, other=0.0).to(tl.float32)
        gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    with pl.scope("epilogue"):
        tl.store(residual_out + offset, h.to(residual_out.dtype.element_ty), mask=inside)
    with pl.scope("compute"):
        squares = tl.sum(h * h, axis=1)[:, None]
        result = _normalized(h, squares, cols, eps, y.dtype.element_ty == tl.float32) * gain
    with pl.scope("epilogue"):
        tl.store(y + offset, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def rmsnorm_row(x, residual, weight, eps, y, residual_out, cols, CHUNK: tl.constexpr):
    """One program: one row of any length, in chunks of CHUNK columns."""
    start = tl.program_id(0).to(tl.int64) * cols
    x += start
    residual += start
    y += start
    residual_out += start
    within = tl.arange(0, CHUNK)
    squares = tl.zeros((CHUNK,), tl.float32)
    for begin in range(0, cols, CHUNK):
        col = begin + within
        with pl.scope("load"):
            h = tl.load(x + col, mask=col < cols, other=0.0).to(tl.float32)
            h += tl.load(residual + col, mask=col < cols, other=0.0).to(tl.float32)
        with pl.scope("epilogue"):
            tl.store(residual_out + col, h.to(residual_out.dtype.element_ty), mask=col < cols)
        with pl.scope("compute"):
            squares += h * h
    with pl.scope("compute"):
        total = tl.sum(squares, axis=0, keep_dims=True)
    chunks = tl.cdiv(cols, CHUNK)
    for step in range(chunks):
        with pl.scope("epilogue"):
            col = (chunks - 1 - step) * CHUNK + within
            h = tl.load(x + col, mask=col < cols, other=0.0).to(tl.float32)
            h += tl.load(residual + col, mask=col < cols, other=0.0).to(tl.float32)
            gain = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
            result = _normalized(h, total, cols, eps, y.dtype.element_ty == tl.float32) * gain
            tl.store(y + col, result.to(y.dtype.element_ty), mask=col < cols)


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
    block = max(MIN_BLOCK, triton.next_power_of_2(cols))
    if block > MAX_BLOCK:
        rmsnorm_row[(rows,)](x, residual, weight, eps, y, residual_out, cols, CHUNK, num_warps=CHUNK_WARPS)
        return
    per_program = max(1, TILE // block)
    warps = min(32, max(4, block // 1024))
    grid = (triton.cdiv(rows, per_program),)
    rmsnorm_tile[grid](x, residual, weight, eps, y, residual_out, rows, cols, per_program, block, num_warps=warps)
