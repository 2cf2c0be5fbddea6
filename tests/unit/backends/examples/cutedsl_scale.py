"""y = x in CuTe DSL, through tensors taken from torch and through TMA; the host function asks what they all ask."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def copy_kernel(x: cute.Tensor, y: cute.Tensor):
    at = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if at < cute.size(x):
        y[at] = x[at]


@cute.jit
def copy(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    copy_kernel(x, y).launch(grid=[cute.ceil_div(cute.size(x), 128), 1, 1], block=[128, 1, 1], stream=stream)


@cute.kernel
def store_kernel(atom: cute.CopyAtom, y: cute.Tensor):
    layout = cute.make_layout((64, 64), stride=(64, 1))
    smem = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.BFloat16, layout, byte_alignment=128)
    at = cute.arch.thread_idx()[0]
    smem[at, 0] = cutlass.BFloat16(1.0)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    tiles = cute.local_tile(y, (64, 64), (None, None))
    source, target = cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(smem, 0, 2), cute.group_modes(tiles, 0, 2)
    )
    if at == 0:
        cute.copy(atom, source, target[None, cute.arch.block_idx()[0], 0])
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def store(y: cute.Tensor, stream: cuda.CUstream):
    layout = cute.make_layout((64, 64), stride=(64, 1))
    atom, view = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), y, layout, (64, 64))
    store_kernel(atom, view).launch(grid=[1, 1, 1], block=[64, 1, 1], stream=stream)


@cute.kernel
def broken_kernel(x: cute.Tensor):
    x[0] = undefined_name  # noqa: F821 - the error


@cute.jit
def broken(x: cute.Tensor):
    broken_kernel(x).launch(grid=[1, 1, 1], block=[1, 1, 1])


def ask(x):
    assert x.is_cuda
    sms = torch.cuda.get_device_properties(x.device).multi_processor_count
    assert cutlass.utils.HardwareInfo().get_device_multiprocessor_count() == sms
    assert torch.cuda.get_device_capability()[0] >= 8
    return cuda.CUstream(torch.cuda.current_stream().cuda_stream)


def through_compile(x, y):
    stream = ask(x)
    source, target = from_dlpack(x.view(-1)).mark_layout_dynamic(), from_dlpack(y.view(-1)).mark_layout_dynamic()
    cute.compile(copy, source, target, stream)(source, target, stream)


def called_directly(x, y):
    copy(from_dlpack(x.view(-1)), from_dlpack(y.view(-1)), ask(x))


def through_tma(x, y):
    stream = ask(x)
    store(from_dlpack(y, assumed_align=16), stream)


def does_not_compile(x, y):
    broken(from_dlpack(x.view(-1)))
