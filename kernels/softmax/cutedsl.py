# /// script
# dependencies = ["nvidia-cutlass-dsl>=4.8", "apache-tvm-ffi>=0.1.11"]
# [tool.kernelci]
# reference = "softmax"
# backend = "cutedsl"
# entry = "softmax"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
# mypy: disable-error-code="untyped-decorator"
"""Softmax over the last axis in CuTe DSL.

A row that fits stays in registers: one read, two reductions (maximum, sum), one write. Up to 32 threads share a short
row without shared memory, and a block takes several rows; a longer row gets up to 1024 threads. A row that doesn't fit
is read twice: an online pass for maximum and sum, a second one (mostly from L2) for the result. Sizes are dynamic: one
build serves all columns up to a power of two. Rows that aren't 16-byte aligned go one element at a time.
"""

import functools
import math
import operator
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass import Float32, Int32, Int64, const_expr
from cutlass.cute.experimental import iket  # ranges name regions, for traces; elsewhere the compiler drops them
from cutlass.cute.runtime import make_fake_stream, make_ptr

DTYPES = {torch.float32: cutlass.Float32, torch.float16: cutlass.Float16, torch.bfloat16: cutlass.BFloat16}
ELEMENTS = 32  # of a row per thread, held as float32 registers: more would cost occupancy
BLOCK = 128  # smallest block; shorter rows share one
MAX_THREADS = 1024
LOWEST = -3.4028234663852886e38  # instead of -inf: LOWEST - LOWEST is 0, not NaN


class Plan(NamedTuple):
    """How a block covers rows; part of the key of a build."""

    vec: int  # elements per load and store
    items: int  # vectors per thread in flight
    threads: int  # per row, a power of two
    looped: bool  # the row is longer than threads * items * vec

    @property
    def rows(self) -> int:
        """Rows per block."""
        return max(BLOCK // self.threads, 1)


@functools.cache
def plan(cols: int, width: int, aligned: bool) -> Plan:
    """The plan for rows of ``cols`` elements of ``width`` bytes; ``aligned``: every row starts at a multiple of 16."""
    vec = 16 // width if aligned else 1
    vectors = 1 << max(math.ceil(cols / vec) - 1, 0).bit_length()
    items = min(max(vectors // 32, 1), ELEMENTS // vec)
    threads = min(vectors // items, MAX_THREADS)
    looped = vectors > threads * items
    return Plan(vec, items // 2 if looped and width == 4 else items, threads, looped)


@cute.jit
def reduce_row(
    value: Float32, op: cutlass.Constexpr[Any], buffer: cute.Tensor, threads: cutlass.Constexpr[int]
) -> Float32:
    """Combine ``value`` over the ``threads`` of a row; ``buffer`` (warps,) float32 in shared memory, used once."""
    value = cute.arch.warp_reduction(value, op, threads_in_group=min(threads, 32))
    if const_expr(threads > 32):
        warps = threads // 32
        warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        if lane == 0:
            buffer[warp] = value
        cute.arch.sync_threads()
        value = buffer[warp // warps * warps + lane % warps]
        value = cute.arch.warp_reduction(value, op, threads_in_group=warps)
    return value


@cute.jit
def load(row: cute.Tensor, first: Int32, step: cutlass.Constexpr[int], fragment: cute.Tensor) -> cute.TensorSSA:
    """Vectors first, first + step, ... of ``row`` (vec, vectors) as float32; -inf beyond the end."""
    fragment.fill(-fragment.element_type.inf)
    for i in cutlass.range_constexpr(fragment.shape[1]):
        if first + i * step < row.shape[1]:
            cute.autovec_copy(row[None, first + i * step], fragment[None, i])
    return fragment.load().to(Float32)


@cute.jit
def store(
    values: cute.TensorSSA, row: cute.Tensor, first: Int32, step: cutlass.Constexpr[int], fragment: cute.Tensor
) -> None:
    """Inverse of ``load``: round to the row's dtype and write what lies inside."""
    fragment.store(values.to(fragment.element_type))
    for i in cutlass.range_constexpr(fragment.shape[1]):
        if first + i * step < row.shape[1]:
            cute.autovec_copy(fragment[None, i], row[None, first + i * step])


@cute.jit
def exp(x: Any, exact: cutlass.Constexpr[bool]) -> Any:
    """e**x; ``exact`` costs a few more instructions than ex2.approx, which a 16-bit result doesn't show."""
    return cute.math.exp(x) if const_expr(exact) else cute.math.exp2(x * math.log2(math.e), fastmath=True)


@cute.kernel
def softmax_in_registers(x: cute.Tensor, y: cute.Tensor, plan: cutlass.Constexpr[Plan]) -> None:
    """y = softmax(x) for tensors (rows, (vec, vectors)); a row in the registers of plan.threads threads."""
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    buffers = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout((32, 2)), byte_alignment=16)
    row, lane = block * plan.rows + tid // plan.threads, tid % plan.threads
    # Every thread takes part in the reductions, so rows beyond the last read it again and write nothing.
    source = x[cutlass.min(row, x.shape[0] - 1), None, None]
    fragment = cute.make_rmem_tensor((plan.vec, plan.items), x.element_type)
    iket.range_push("load")
    values = load(source, lane, plan.threads, fragment)
    top = values.reduce(cute.ReductionOp.MAX, init_val=-Float32.inf, reduction_profile=0)
    iket.range_pop()  # the maximum has waited for all of it
    iket.range_push("compute")
    top = reduce_row(top, cute.arch.fmax, buffers[None, 0], plan.threads)
    powers = exp(values - top, x.element_type is Float32)
    total = powers.reduce(cute.ReductionOp.ADD, init_val=0.0, reduction_profile=0)
    total = reduce_row(total, operator.add, buffers[None, 1], plan.threads)
    iket.range_pop()
    iket.range_push("epilogue")
    if row < x.shape[0]:
        store(powers * (1.0 / total), y[row, None, None], lane, plan.threads, fragment)
    iket.range_pop()


@cute.kernel
def softmax_in_two_passes(x: cute.Tensor, y: cute.Tensor, plan: cutlass.Constexpr[Plan]) -> None:
    """The same for rows of any length: one block a row, which it reads twice."""
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    exact = const_expr(x.element_type is Float32)
    buffers = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout((32, 2)), byte_alignment=16)
    source, target = x[row, None, None], y[row, None, None]
    fragment = cute.make_rmem_tensor((plan.vec, plan.items), x.element_type)
    span = plan.threads * plan.items
    steps = cute.ceil_div(x.shape[2], span)
    top, total = Float32(LOWEST), Float32(0.0)
    for step in cutlass.range(steps, unroll=1):
        iket.range_push("load")
        values = load(source, lane + step * span, plan.threads, fragment)
        higher = cute.arch.fmax(top, values.reduce(cute.ReductionOp.MAX, init_val=LOWEST, reduction_profile=0))
        iket.range_pop()
        iket.range_push("compute")
        part = exp(values - higher, exact).reduce(cute.ReductionOp.ADD, init_val=0.0, reduction_profile=0)
        total = total * exp(top - higher, exact) + part
        top = higher
        iket.range_pop()
    iket.range_push("compute")
    row_top = reduce_row(top, cute.arch.fmax, buffers[None, 0], plan.threads)
    scale = 1.0 / reduce_row(total * exp(top - row_top, exact), operator.add, buffers[None, 1], plan.threads)
    iket.range_pop()
    iket.range_push("epilogue")
    for step in cutlass.range(steps, unroll=1):  # backwards: what was read last is still in the L2 cache
        start = lane + (steps - 1 - step) * span
        values = load(source, start, plan.threads, fragment)
        store(exp(values - row_top, exact) * scale, target, start, plan.threads, fragment)
    iket.range_pop()


@cute.jit
def launch(
    x: cute.Pointer, y: cute.Pointer, rows: Int32, cols: Int32, stream: cuda.CUstream, plan: cutlass.Constexpr[Plan]
) -> None:
    """View x and y as (rows, vec, vectors) and start one thread block per plan.rows rows."""
    pitch = cute.assume(Int64(cols), divby=plan.vec)  # 64 bits: rows * cols may exceed 2**31
    layout = cute.make_layout((rows, plan.vec, cols // plan.vec), stride=(pitch, 1, plan.vec))
    kernel = softmax_in_two_passes if const_expr(plan.looped) else softmax_in_registers
    kernel(cute.make_tensor(x, layout), cute.make_tensor(y, layout), plan).launch(
        grid=[cute.ceil_div(rows, plan.rows), 1, 1], block=[plan.rows * plan.threads, 1, 1], stream=stream
    )


def build(dtype: torch.dtype, plan: Plan, target: str, options: str = "") -> Any:
    """Compile for a target like "sm_90a"; the result takes (x, y) addresses, rows, cols and a stream handle."""
    pointer = make_ptr(DTYPES[dtype], 16, cute.AddressSpace.gmem, assumed_align=plan.vec * dtype.itemsize)
    options = f"--enable-tvm-ffi --gpu-arch={target} {options}"
    return cute.compile(launch, pointer, pointer, Int32(1), Int32(1), make_fake_stream(), plan, options=options)


@functools.cache
def device_build(dtype: torch.dtype, plan: Plan, device: torch.device) -> Any:
    """``build`` for the device's own architecture, kept."""
    major, minor = torch.cuda.get_device_capability(device)
    return build(dtype, plan, f"sm_{major}{minor}{'a' if major >= 9 else ''}")


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """y = softmax(x) over the last axis; x, y (rows, cols) of one dtype: float32, float16 or bfloat16."""
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return
    aligned = (x.data_ptr() | y.data_ptr() | cols * x.element_size()) % 16 == 0
    kernel = device_build(x.dtype, plan(cols, x.element_size(), aligned), x.device)
    kernel(x.data_ptr(), y.data_ptr(), rows, cols, torch.cuda.current_stream().cuda_stream)


def compile(case: Any, target: str) -> Iterator[Any]:
    """Yield what ``softmax`` would run for an aligned case on ``target``, with PTX and cubin; needs no GPU."""
    if case.rows == 0 or case.cols == 0:
        return
    chosen = plan(case.cols, case.dtype.itemsize, case.cols * case.dtype.itemsize % 16 == 0)
    with tempfile.TemporaryDirectory() as folder:
        compiled = build(case.dtype, chosen, target, f"--keep-ptx --keep-cubin --dump-dir={folder}")
    yield compiled
