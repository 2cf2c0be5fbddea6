# /// script
# dependencies = ["nvidia-cutlass-dsl>=4.8", "apache-tvm-ffi>=0.1.11"]
# [tool.kernelci]
# reference = "matmul"
# backend = "cutedsl"
# entry = "matmul"
# targets = ["sm_90a"]
# regions = ["load", "wait", "compute", "epilogue"]
# ///
# mypy: disable-error-code="untyped-decorator"
"""c = a @ b.T in bfloat16 with float32 accumulation on Hopper's warpgroup MMA, in CuTe DSL.

A persistent, warp-specialised kernel: one producer warp streams tiles of a and b through a ring of shared-memory stages
with TMA, one or two consumer warpgroups multiply them with wgmma, and the producer already loads the next tile while
they write the last. Large tiles leave by TMA too; small ones (few tiles, or a c that TMA can't write) by predicated
stores. A generic kernel with the same MMA and plain loads takes what TMA can't read: k not a multiple of 8, or inputs
that aren't 16-byte aligned. Sizes are dynamic: three builds serve every shape.
"""

import functools
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils.hopper_helpers as hopper
import torch
from cutlass import BFloat16, Float32, Int16, Int32, Int64, const_expr, pipeline
from cutlass.cute.experimental import iket  # ranges name regions, for traces; elsewhere the compiler drops them
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
from cutlass.cute.runtime import make_fake_stream, make_ptr

GROUP = 128  # threads of a warpgroup
K = 64  # depth of a stage: 128 bytes, the widest swizzle
STORE_COLUMNS = 64  # of c per TMA store
STORES = 2  # shared-memory buffers for them

Operand: TypeAlias = tuple[Any, ...]  # TMA atom, the matrix as it sees it, and inside the kernel its shared tensor
Tile: TypeAlias = tuple[Int32, Int32]  # along m and n


class Plan(NamedTuple):
    """A block's tile; the key of a build."""

    m: int
    n: int
    groups: int  # consumer warpgroups, stacked along m
    stages: int  # of a and b in flight; 0: the generic kernel
    tma_store: bool = False
    cluster: int = 1  # blocks along m that share (multicast) each tile of b
    raster: int = 16  # tiles along m that are worked on together, for reuse in L2


Static: TypeAlias = cutlass.Constexpr[Plan]

LARGE = Plan(128, 256, groups=2, stages=4, tma_store=True)
SMALL = Plan(64, 64, groups=1, stages=12)
GENERIC = Plan(64, 64, groups=1, stages=0)


def make_mma(plan: Plan) -> cute.TiledMma:
    """wgmma 64 x plan.n x 16 for K-major bf16 operands in shared memory, one per consumer warpgroup."""
    major = OperandMajorMode.K
    return hopper.make_trivial_tiled_mma(
        BFloat16, BFloat16, major, major, Float32, (plan.groups, 1, 1), tiler_mn=(64, plan.n)
    )


def smem_layout(rows: int, columns: int, stages: int) -> cute.ComposedLayout:
    """(rows, columns, stages) bf16 in the 128-byte swizzle that TMA writes and wgmma reads."""
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, BFloat16)
    return cute.tile_to_shape(atom, (rows, columns, stages), order=(0, 1, 2))


def shared_tensor(allocator: cutlass.utils.SmemAllocator, layout: cute.ComposedLayout) -> cute.Tensor:
    """A tensor of this layout in the block's shared memory."""
    return allocator.allocate_tensor(BFloat16, layout.outer, byte_alignment=1024, swizzle=layout.inner)


def make_fragments(mma: cute.TiledMma, thread: Int32, a: cute.Tensor, b: cute.Tensor, plan: Plan) -> tuple[Any, ...]:
    """The wgmma operands in shared memory for the warpgroup that starts at ``thread``, and its accumulators."""
    part = mma.get_slice(thread)
    acc = cute.make_rmem_tensor(mma.partition_shape_C((plan.m, plan.n)), Float32)
    mma.set(warpgroup.Field.ACCUMULATE, True)
    return mma.make_fragment_A(part.partition_A(a)), mma.make_fragment_B(part.partition_B(b)), acc


@cute.jit
def tile_of(index: Int32, tiles_m: Int32, tiles_n: Int32, raster: cutlass.Constexpr[int]) -> Tile:
    """Tile coordinates: bands of ``raster`` tiles along m, each walked along n, so that neighbours share operands."""
    band = index // (raster * tiles_n)
    height = cutlass.min(raster, tiles_m - band * raster)
    within = index - band * raster * tiles_n
    return band * raster + within % height, within // height


@cute.jit
def store_direct(plan: Static, mma: cute.TiledMma, tid: Int32, c: cute.Tensor, acc: cute.Tensor, at: Tile) -> None:
    """Write the accumulators of a tile to c (m, n), element by element where inside."""
    where = mma.get_slice(tid).partition_C(cute.make_identity_tensor((plan.m, plan.n)))
    for i in cutlass.range_constexpr(cute.size(acc)):
        row, column = where[i][0] + at[0] * plan.m, where[i][1] + at[1] * plan.n
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = acc[i].to(BFloat16)


@cute.jit
def store_tma(plan: Static, mma: cute.TiledMma, tid: Int32, target: Operand, acc: cute.Tensor, at: Tile) -> None:
    """Write the accumulators of a tile by TMA through target's shared memory (rows, STORE_COLUMNS, STORES)."""
    tma, c, smem = target
    barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=GROUP * plan.groups)
    atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), BFloat16)
    copy = cute.make_tiled_copy_S(atom, cute.make_tiled_copy_C_atom(atom, mma))
    to_smem = copy.get_slice(tid).partition_D(smem)
    values = copy.retile(acc)
    part = cute.make_rmem_tensor(cute.shape(copy.get_slice(tid).partition_S(smem))[:3], BFloat16)
    tile = cute.zipped_divide(cute.local_tile(c, (plan.m, plan.n), at), (plan.m, STORE_COLUMNS))
    source, sink = cpasync.tma_partition(tma, 0, cute.make_layout(1), cute.group_modes(smem, 0, 2), tile)
    leader = cute.arch.make_warp_uniform(tid // 32) == 0
    for i in cutlass.range_constexpr(plan.n // STORE_COLUMNS):
        for j in cutlass.range_constexpr(cute.size(part)):
            part[j] = values[i * cute.size(part) + j].to(BFloat16)
        if leader:  # the store that last read this buffer is done with it
            cute.arch.cp_async_bulk_wait_group(STORES - 1, read=True)
        barrier.arrive_and_wait()
        cute.copy(copy, part, to_smem[None, None, None, i % STORES])
        cute.arch.fence_proxy("async.shared", space="cta")
        barrier.arrive_and_wait()
        if leader:
            cute.copy(tma, source[None, i % STORES], sink[None, (0, i)])
            cute.arch.cp_async_bulk_commit_group()


@cute.jit
def multiply(acc: cute.Tensor, a: cute.Tensor, b: cute.Tensor, stage: Int32, mma: cute.TiledMma) -> None:
    """Start acc += a @ b.T on one stage, as one wgmma group."""
    for k in cutlass.range_constexpr(cute.size(a, mode=[2])):
        cute.gemm(mma, acc, a[None, None, k, stage], b[None, None, k, stage], acc)
    warpgroup.commit_group()


class Work(NamedTuple):
    """What a block does: the tiles first, first + step, ... of tiles_m * tiles_n, each in steps_k stages."""

    first: Int32
    step: Int32
    tiles_m: Int32  # in clusters
    tiles_n: Int32
    steps_k: Int32
    rank: Int32  # of the block in its cluster


@cute.jit
def produce(ring: pipeline.PipelineTmaAsync, load_a: Operand, load_b: Operand, work: Work, plan: Static) -> None:
    """The producer warp: load every stage of every tile of both operands."""
    tma_a, a, smem_a = load_a
    tma_b, b, smem_b = load_b
    tiles_a = cute.group_modes(cute.local_tile(a, (plan.m, K), (None, None)), 0, 2)
    tiles_b = cute.group_modes(cute.local_tile(b, (plan.n, K), (None, None)), 0, 2)
    to_a, from_a = cpasync.tma_partition(tma_a, 0, cute.make_layout(1), cute.group_modes(smem_a, 0, 2), tiles_a)
    # Each block of a cluster loads its share of b's tile for all of them.
    share = cute.make_layout(plan.cluster)
    to_b, from_b = cpasync.tma_partition(tma_b, work.rank, share, cute.group_modes(smem_b, 0, 2), tiles_b)
    mask = Int16((1 << plan.cluster) - 1 if plan.cluster > 1 else 0)
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, plan.stages)
    for index in cutlass.range(work.first, work.tiles_m * work.tiles_n, work.step, unroll=1):
        tile_m, tile_n = tile_of(index, work.tiles_m, work.tiles_n, plan.raster // plan.cluster)
        iket.range_push("load")
        for k in cutlass.range(work.steps_k, unroll=1):
            ring.producer_acquire(state)  # waits until the stage is free and announces its bytes
            full = ring.producer_get_barrier(state)
            source_a, source_b = from_a[None, tile_m * plan.cluster + work.rank, k], from_b[None, tile_n, k]
            cute.copy(tma_a, source_a, to_a[None, state.index], tma_bar_ptr=full)
            cute.copy(tma_b, source_b, to_b[None, state.index], tma_bar_ptr=full, mcast_mask=mask)
            state.advance()
        iket.range_pop()
    ring.producer_tail(state)  # no block may exit while another still signals its barriers


@cute.jit
def consume(
    ring: pipeline.PipelineTmaAsync, mma: cute.TiledMma, parts: Operand, store: Any, work: Work, plan: Static
) -> None:
    """A consumer warpgroup: multiply the stages of every tile in ``parts`` and ``store(accumulators, tile)``."""
    operand_a, operand_b, acc = parts
    ready = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, plan.stages)
    done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, plan.stages)
    for index in cutlass.range(work.first, work.tiles_m * work.tiles_n, work.step, unroll=1):
        iket.range_push("compute")
        acc.fill(0.0)
        warpgroup.fence()
        iket.range_push("wait")
        ring.consumer_wait(ready)
        iket.range_pop()
        multiply(acc, operand_a, operand_b, ready.index, mma)
        ready.advance()
        for _ in cutlass.range(1, work.steps_k, unroll=1):
            iket.range_push("wait")
            ring.consumer_wait(ready)
            iket.range_pop()
            multiply(acc, operand_a, operand_b, ready.index, mma)
            ready.advance()
            warpgroup.wait_group(1)  # all but the newest product: the stage before it is free
            ring.consumer_release(done)
            done.advance()
        warpgroup.wait_group(0)
        iket.range_pop()
        iket.range_push("epilogue")
        ring.consumer_release(done)
        done.advance()
        tile_m, tile_n = tile_of(index, work.tiles_m, work.tiles_n, plan.raster // plan.cluster)
        store(acc, (tile_m * plan.cluster + work.rank, tile_n))
        iket.range_pop()


@cute.jit
def make_ring(storage: cute.Pointer, plan: Static) -> pipeline.PipelineTmaAsync:
    """Full and empty barriers of the stages, in ``storage`` (2 * stages) int64, visible to the whole cluster."""
    cluster = cute.make_layout((1, plan.cluster, 1, 1))
    # A consumer warp frees a stage with one arrival at each block of the cluster.
    ring = pipeline.PipelineTmaAsync.create(
        barrier_storage=storage,
        num_stages=plan.stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, plan.cluster * plan.groups * 4),
        tx_count=(plan.m + plan.n) * K * 2,
        cta_layout_vmnk=cluster,
        defer_sync=True,
    )
    pipeline.pipeline_init_arrive(cluster_shape_mn=cluster, is_relaxed=True)
    pipeline.pipeline_init_wait(cluster_shape_mn=cluster)
    return ring


@cute.kernel
def matmul_tma(a: Operand, b: Operand, c: Operand, mma: cute.TiledMma, plan: Static) -> None:
    """a (m, k), b (n, k) and, unless its atom is None, c (m, n) as TMA tensors; persistent over the tiles of c."""
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp_index = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    allocator = cutlass.utils.SmemAllocator()
    smem_a = shared_tensor(allocator, smem_layout(plan.m, K, plan.stages))
    smem_b = shared_tensor(allocator, smem_layout(plan.n, K, plan.stages))
    smem_c = shared_tensor(allocator, smem_layout(plan.m, STORE_COLUMNS, STORES)) if plan.tma_store else None
    ring = make_ring(allocator.allocate_array(Int64, 2 * plan.stages), plan)
    work = Work(
        first=block // plan.cluster,
        step=blocks // plan.cluster,
        tiles_m=cute.ceil_div(c[1].shape[0], plan.m * plan.cluster),
        tiles_n=cute.ceil_div(c[1].shape[1], plan.n),
        steps_k=cute.ceil_div(a[1].shape[1], K),
        rank=block % plan.cluster,
    )
    if warp_index < GROUP // 32:
        if const_expr(plan.groups > 1):
            cute.arch.setmaxregister_decrease(40)
        if warp_index == 0:
            produce(ring, (*a, smem_a), (*b, smem_b), work, plan)
    else:
        if const_expr(plan.groups > 1):
            cute.arch.setmaxregister_increase(232)
        if const_expr(plan.tma_store):
            store = functools.partial(store_tma, plan, mma, tid - GROUP, (*c, smem_c))
        else:
            store = functools.partial(store_direct, plan, mma, tid - GROUP, c[1])
        parts = make_fragments(mma, (warp_index // 4 - 1) * GROUP, smem_a, smem_b, plan)
        consume(ring, mma, parts, store, work, plan)
        if const_expr(plan.tma_store):
            cute.arch.cp_async_bulk_wait_group(0)  # the shared memory must outlive the stores


@cute.jit
def fill(smem: cute.Tensor, gmem: cute.Tensor, row: Int32, k: Int32, tid: Int32) -> None:
    """smem (rows, K, 1) = the tile of gmem that starts at (row, k), 0 outside; by one warpgroup."""
    part = cute.make_rmem_tensor(cute.size(smem) // GROUP, BFloat16)
    part.fill(0.0)
    y, x = tid // K, tid % K
    for i in cutlass.range_constexpr(cute.size(part)):
        if row + y + i * (GROUP // K) < gmem.shape[0] and k + x < gmem.shape[1]:
            part[i] = gmem[row + y + i * (GROUP // K), k + x]
    for i in cutlass.range_constexpr(cute.size(part)):
        smem[y + i * (GROUP // K), x, 0] = part[i]


@cute.kernel
def matmul_generic(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma, plan: Static) -> None:
    """One tile of c per block, plain loads, any alignment."""
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    allocator = cutlass.utils.SmemAllocator()
    smem_a = shared_tensor(allocator, smem_layout(plan.m, K, 1))
    smem_b = shared_tensor(allocator, smem_layout(plan.n, K, 1))
    operand_a, operand_b, acc = make_fragments(mma, 0, smem_a, smem_b, plan)
    acc.fill(0.0)
    tiles_m, tiles_n = cute.ceil_div(c.shape[0], plan.m), cute.ceil_div(c.shape[1], plan.n)
    tile_m, tile_n = tile_of(block, tiles_m, tiles_n, plan.raster)
    for k in cutlass.range(0, a.shape[1], K, unroll=1):
        iket.range_push("load")
        fill(smem_a, a, tile_m * plan.m, k, tid)
        fill(smem_b, b, tile_n * plan.n, k, tid)
        cute.arch.fence_proxy("async.shared", space="cta")  # wgmma reads through the asynchronous proxy
        cute.arch.sync_threads()
        iket.range_pop()
        iket.range_push("compute")
        warpgroup.fence()
        multiply(acc, operand_a, operand_b, 0, mma)
        warpgroup.wait_group(0)
        cute.arch.sync_threads()
        iket.range_pop()
    iket.range_push("epilogue")
    store_direct(plan, mma, tid, c, acc, (tile_m, tile_n))
    iket.range_pop()


def make_tma(op: Any, matrix: cute.Tensor, rows: int, columns: int, multicast: int = 1) -> Operand:
    """The TMA atom, and the matrix as it sees it, for boxes (rows, columns) in swizzled shared memory."""
    box = cute.slice_(smem_layout(rows, columns, 1), (None, None, 0))
    atom, view = cpasync.make_tiled_tma_atom(op, matrix, box, (rows, columns), num_multicast=multicast)
    return atom, view


@cute.jit
def launch(
    a: cute.Pointer,
    b: cute.Pointer,
    c: cute.Pointer,
    m: Int32,
    n: Int32,
    k: Int32,
    blocks: Int32,
    stream: cuda.CUstream,
    plan: Static,
) -> None:
    """View the operands as matrices, describe them to TMA, start ``blocks`` thread blocks."""
    pitch = cute.assume(Int64(k), divby=8 if plan.stages > 0 else 1)  # 64 bits: m * k may exceed 2**31
    pitch_c = cute.assume(Int64(n), divby=8 if plan.tma_store else 1)
    matrix_a = cute.make_tensor(a, cute.make_layout((m, k), stride=(pitch, 1)))
    matrix_b = cute.make_tensor(b, cute.make_layout((n, k), stride=(pitch, 1)))
    matrix_c = cute.make_tensor(c, cute.make_layout((m, n), stride=(pitch_c, 1)))
    mma = make_mma(plan)
    threads = GROUP * (plan.groups + (plan.stages > 0))  # a warpgroup more where there is a producer
    shape = {"grid": [blocks, 1, 1], "block": [threads, 1, 1], "cluster": [plan.cluster, 1, 1]}
    if const_expr(plan.stages == 0):
        matmul_generic(matrix_a, matrix_b, matrix_c, mma, plan).launch(**shape, stream=stream)
    else:
        load = cpasync.CopyBulkTensorTileG2SOp()
        load_b = cpasync.CopyBulkTensorTileG2SMulticastOp() if const_expr(plan.cluster > 1) else load
        operand_a = make_tma(load, matrix_a, plan.m, K)
        operand_b = make_tma(load_b, matrix_b, plan.n, K, plan.cluster)
        operand_c = (None, matrix_c)
        if const_expr(plan.tma_store):
            operand_c = make_tma(cpasync.CopyBulkTensorTileS2GOp(), matrix_c, plan.m, STORE_COLUMNS)
        matmul_tma(operand_a, operand_b, operand_c, mma, plan).launch(**shape, min_blocks_per_mp=1, stream=stream)


def build(plan: Plan, target: str, options: str = "") -> Any:
    """Compile for "sm_90a"; the result takes (a, b, c) addresses, m, n, k, blocks and a stream handle."""
    gmem = cute.AddressSpace.gmem
    read = make_ptr(BFloat16, 16, gmem, assumed_align=16 if plan.stages > 0 else 2)
    write = make_ptr(BFloat16, 16, gmem, assumed_align=16 if plan.tma_store else 2)
    arguments = (read, read, write, *[Int32(64)] * 4, make_fake_stream(), plan)
    return cute.compile(launch, *arguments, options=f"--enable-tvm-ffi --gpu-arch={target} {options}")


@functools.cache
def device_build(plan: Plan) -> Any:
    """``build``, kept: wgmma exists on sm_90a alone."""
    return build(plan, "sm_90a")


@functools.cache
def processors(device: torch.device) -> int:
    """Number of SMs."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def tiles(plan: Plan, m: int, n: int) -> int:
    """Tiles of c, rounded up to whole clusters."""
    return -(-m // (plan.m * plan.cluster)) * -(-n // plan.n) * plan.cluster


def choose(m: int, n: int, k: int, aligned: bool, aligned_c: bool, sms: int) -> Plan:
    """The plan for a problem; ``aligned``: a and b, ``aligned_c``: c start at multiples of 16 bytes."""
    if k % 8 or not aligned:
        return GENERIC
    if n % 8 or not aligned_c or tiles(LARGE, m, n) < sms // 2:
        return SMALL
    return LARGE


def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """c = a @ b.T; a (m, k), b (n, k), c (m, n), all bfloat16; accumulation in float32."""
    (m, k), n = a.shape, b.shape[0]
    if m == 0 or n == 0:
        return
    if k == 0:
        c.zero_()
        return
    sms = processors(a.device)
    plan = choose(m, n, k, (a.data_ptr() | b.data_ptr()) % 16 == 0, c.data_ptr() % 16 == 0, sms)
    blocks = tiles(plan, m, n)
    if plan.stages:
        blocks = min(blocks, sms // plan.cluster * plan.cluster)
    stream = torch.cuda.current_stream().cuda_stream
    device_build(plan)(a.data_ptr(), b.data_ptr(), c.data_ptr(), m, n, k, blocks, stream)


def compile(case: Any, target: str) -> Iterator[Any]:
    """Yield what ``matmul`` would run for an aligned case on a GPU of 132 SMs, with PTX and cubin; needs no GPU."""
    if case.m == 0 or case.n == 0 or case.k == 0:
        return
    plan = choose(case.m, case.n, case.k, aligned=True, aligned_c=True, sms=132)
    with tempfile.TemporaryDirectory() as folder:
        compiled = build(plan, target, f"--keep-ptx --keep-cubin --dump-dir={folder}")
    yield compiled
