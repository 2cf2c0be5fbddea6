# /// script
# dependencies = ["nvidia-cutlass-dsl>=4.8", "apache-tvm-ffi>=0.1.11"]
# [tool.kernelci]
# reference = "rmsnorm"
# backend = "cutedsl"
# entry = "rmsnorm"
# targets = ["sm_80", "sm_90a", "sm_100a"]
# regions = ["load", "compute", "epilogue"]
# ///
# mypy: disable-error-code="untyped-decorator"
"""Residual add and RMSNorm in CuTe DSL: h = x + residual, y = h / sqrt(mean(h**2) + eps) * weight.

A row that fits stays in registers as float32 h: both inputs are read once, both outputs written once. Up to 32 threads
share a short row without shared memory, and a block takes several rows; a longer row gets up to 1024 threads. A row
that doesn't fit is read twice, the second time mostly from L2. Sizes are dynamic: one build serves all columns up to a
power of two. Rows that aren't 16-byte aligned go one element at a time.
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
ELEMENTS = 16  # of a row per thread: h, both inputs and the weight take registers, and more would cost occupancy
BLOCK = 128  # smallest block; shorter rows share one
MAX_THREADS = 1024


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
    return Plan(vec, items, threads, vectors > threads * items)


@cute.jit
def sum_row(value: Float32, buffer: cute.Tensor, threads: cutlass.Constexpr[int]) -> Float32:
    """Sum ``value`` over the ``threads`` of a row; ``buffer`` (warps,) float32 in shared memory, used once."""
    value = cute.arch.warp_reduction(value, operator.add, threads_in_group=min(threads, 32))
    if const_expr(threads > 32):
        warps = threads // 32
        warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        if lane == 0:
            buffer[warp] = value
        cute.arch.sync_threads()
        value = buffer[warp // warps * warps + lane % warps]
        value = cute.arch.warp_reduction(value, operator.add, threads_in_group=warps)
    return value


@cute.jit
def load(row: cute.Tensor, first: Int32, plan: cutlass.Constexpr[Plan]) -> cute.TensorSSA:
    """Vectors first, first + threads, ... of ``row`` (vec, vectors) as float32; 0 beyond the end."""
    fragment = cute.make_rmem_tensor((plan.vec, plan.items), row.element_type)
    fragment.fill(0)
    for i in cutlass.range_constexpr(plan.items):
        if first + i * plan.threads < row.shape[1]:
            cute.autovec_copy(row[None, first + i * plan.threads], fragment[None, i])
    return fragment.load().to(Float32)


@cute.jit
def store(values: cute.TensorSSA, row: cute.Tensor, first: Int32, plan: cutlass.Constexpr[Plan]) -> None:
    """Inverse of ``load``: round to the row's dtype and write what lies inside."""
    fragment = cute.make_rmem_tensor((plan.vec, plan.items), row.element_type)
    fragment.store(values.to(row.element_type))
    for i in cutlass.range_constexpr(plan.items):
        if first + i * plan.threads < row.shape[1]:
            cute.autovec_copy(fragment[None, i], row[None, first + i * plan.threads])


@cute.jit
def inverse_rms(squares: Float32, cols: Int32, eps: Float32) -> Float32:
    """1 / sqrt(squares / cols + eps), correctly rounded steps: a whole row shares this error."""
    return 1.0 / cute.math.sqrt(squares / Float32(cols) + eps)


@cute.jit
def squares_of(h: cute.TensorSSA) -> Float32:
    """The thread's sum of h**2."""
    return (h * h).reduce(cute.ReductionOp.ADD, init_val=0.0, reduction_profile=0)


@cute.kernel
def rmsnorm_in_registers(
    x: cute.Tensor,
    residual: cute.Tensor,
    weight: cute.Tensor,
    eps: Float32,
    y: cute.Tensor,
    residual_out: cute.Tensor,
    plan: cutlass.Constexpr[Plan],
) -> None:
    """Tensors (rows, vec, vectors), weight (vec, vectors); a row in the registers of plan.threads threads."""
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    buffer = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout(32), byte_alignment=16)
    row, lane = block * plan.rows + tid // plan.threads, tid % plan.threads
    # Every thread takes part in the sum, so rows beyond the last read it again and write nothing.
    inside = cutlass.min(row, x.shape[0] - 1)
    iket.range_push("load")
    h = load(x[inside, None, None], lane, plan) + load(residual[inside, None, None], lane, plan)
    gain = load(weight, lane, plan)  # before the sum, which hides its latency
    iket.range_pop()
    iket.range_push("compute")
    total = sum_row(squares_of(h), buffer, plan.threads)
    scale = inverse_rms(total, plan.vec * x.shape[2], eps)
    iket.range_pop()
    iket.range_push("epilogue")
    if row < x.shape[0]:
        store(h, residual_out[row, None, None], lane, plan)
        store(h * scale * gain, y[row, None, None], lane, plan)
    iket.range_pop()


@cute.kernel
def rmsnorm_in_two_passes(
    x: cute.Tensor,
    residual: cute.Tensor,
    weight: cute.Tensor,
    eps: Float32,
    y: cute.Tensor,
    residual_out: cute.Tensor,
    plan: cutlass.Constexpr[Plan],
) -> None:
    """The same for rows of any length: one block a row, which it reads twice."""
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    buffer = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout(32), byte_alignment=16)
    span = plan.threads * plan.items
    steps = cute.ceil_div(x.shape[2], span)
    total = Float32(0.0)
    for step in cutlass.range(steps, unroll=1):
        start = lane + step * span
        iket.range_push("load")
        h = load(x[row, None, None], start, plan) + load(residual[row, None, None], start, plan)
        iket.range_pop()
        iket.range_push("compute")
        total += squares_of(h)
        iket.range_pop()
    iket.range_push("compute")
    scale = inverse_rms(sum_row(total, buffer, plan.threads), plan.vec * x.shape[2], eps)
    iket.range_pop()
    iket.range_push("epilogue")
    for step in cutlass.range(steps, unroll=1):  # backwards: what was read last is still in the L2 cache
        start = lane + (steps - 1 - step) * span
        h = load(x[row, None, None], start, plan) + load(residual[row, None, None], start, plan)
        store(h, residual_out[row, None, None], start, plan)
        store(h * scale * load(weight, start, plan), y[row, None, None], start, plan)
    iket.range_pop()


@cute.jit
def launch(
    x: cute.Pointer,
    residual: cute.Pointer,
    weight: cute.Pointer,
    eps: Float32,
    y: cute.Pointer,
    residual_out: cute.Pointer,
    rows: Int32,
    cols: Int32,
    stream: cuda.CUstream,
    plan: cutlass.Constexpr[Plan],
) -> None:
    """View the tensors as (rows, vec, vectors) and start one thread block per plan.rows rows."""
    pitch = cute.assume(Int64(cols), divby=plan.vec)  # 64 bits: rows * cols may exceed 2**31
    layout = cute.make_layout((rows, plan.vec, cols // plan.vec), stride=(pitch, 1, plan.vec))
    inputs = [cute.make_tensor(pointer, layout) for pointer in (x, residual)]
    outputs = [cute.make_tensor(pointer, layout) for pointer in (y, residual_out)]
    gain = cute.make_tensor(weight, cute.make_layout((plan.vec, cols // plan.vec), stride=(1, plan.vec)))
    kernel = rmsnorm_in_two_passes if const_expr(plan.looped) else rmsnorm_in_registers
    kernel(*inputs, gain, eps, *outputs, plan).launch(
        grid=[cute.ceil_div(rows, plan.rows), 1, 1], block=[plan.rows * plan.threads, 1, 1], stream=stream
    )


def build(dtype: torch.dtype, plan: Plan, target: str, options: str = "") -> Any:
    """Compile for a target like "sm_90a"; the result takes the entry's inputs and outputs as addresses (eps as it is),
    then rows, cols and a stream handle."""
    pointer = make_ptr(DTYPES[dtype], 16, cute.AddressSpace.gmem, assumed_align=plan.vec * dtype.itemsize)
    sizes = (Int32(1), Int32(1), make_fake_stream())
    options = f"--enable-tvm-ffi --gpu-arch={target} {options}"
    return cute.compile(
        launch, pointer, pointer, pointer, Float32(0.0), pointer, pointer, *sizes, plan, options=options
    )


@functools.cache
def device_build(dtype: torch.dtype, plan: Plan, device: torch.device) -> Any:
    """``build`` for the device's own architecture, kept."""
    major, minor = torch.cuda.get_device_capability(device)
    return build(dtype, plan, f"sm_{major}{minor}{'a' if major >= 9 else ''}")


def rmsnorm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
    y: torch.Tensor,
    residual_out: torch.Tensor,
) -> None:
    """residual_out = h = x + residual; y = h / sqrt(mean(h**2) + eps) * weight from the unrounded float32 h.

    All of one dtype (float32, float16, bfloat16): weight (cols,), the others (rows, cols).
    """
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return
    addresses = [tensor.data_ptr() for tensor in (x, residual, weight, y, residual_out)]
    aligned = functools.reduce(operator.or_, addresses, cols * x.element_size()) % 16 == 0
    kernel = device_build(x.dtype, plan(cols, x.element_size(), aligned), x.device)
    kernel(*addresses[:3], eps, *addresses[3:], rows, cols, torch.cuda.current_stream().cuda_stream)


def compile(case: Any, target: str) -> Iterator[Any]:
    """Yield what ``rmsnorm`` would run for an aligned case on ``target``, with PTX and cubin; needs no GPU."""
    if case.rows == 0 or case.cols == 0:
        return
    chosen = plan(case.cols, case.dtype.itemsize, case.cols * case.dtype.itemsize % 16 == 0)
    with tempfile.TemporaryDirectory() as folder:
        compiled = build(case.dtype, chosen, target, f"--keep-ptx --keep-cubin --dump-dir={folder}")
    yield compiled
