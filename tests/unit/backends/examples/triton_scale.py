# ruff: noqa: N803 - constants of a kernel are written in capitals
"""y = 2 x in Triton; the host function asks all that host functions ask, and describes its tensors to TMA."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def set_blocks(arguments):
    arguments["x"].block_shape = [arguments["ROWS"], 64]
    arguments["y"].block_shape = [arguments["ROWS"], 64]


CONFIGS = [triton.Config({"ROWS": rows}, num_warps=4, pre_hook=set_blocks) for rows in (2048, 16, 32)]


@triton.autotune(CONFIGS, key=["rows"])
@triton.heuristics({"WHOLE": lambda a: a["rows"] % a["ROWS"] == 0})
@triton.jit
def scale_tma(x, y, rows, ROWS: tl.constexpr, WHOLE: tl.constexpr):
    first = tl.program_id(0) * ROWS
    y.store([first, 0], x.load([first, 0]) * 2)


@triton.jit
def scale_plain(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def scale_on_device(x, y, rows, ROWS: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, 64], [64, 1], [ROWS, 64])
    target = tl.make_tensor_descriptor(y, [rows, 64], [64, 1], [ROWS, 64])
    target.store([tl.program_id(0) * ROWS, 0], source.load([tl.program_id(0) * ROWS, 0]) * 2)


@triton.jit
def broken(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + undefined)  # noqa: F821 - the error


@triton.jit
def greedy(x, y, n, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None] * n
    total = tl.zeros((ROWS, ROWS), tl.float32)
    for k in range(0, n, DEPTH):
        tile = x + row + k + tl.arange(0, DEPTH)[None, :]
        total = tl.dot(tl.load(tile), tl.trans(tl.load(tile + ROWS * n)), total)
    tl.store(y + row + tl.arange(0, ROWS)[None, :], total.to(tl.bfloat16))


def ask(x):
    assert x.is_cuda
    properties = torch.cuda.get_device_properties(x.device)
    driver = triton.runtime.driver.active
    assert (
        driver.utils.get_device_properties(x.device.index)["multiprocessor_count"] == properties.multi_processor_count
    )
    major, minor = torch.cuda.get_device_capability(x.device)
    assert driver.get_current_target().arch == major * 10 + minor
    assert isinstance(torch.cuda.current_stream().cuda_stream, int)


def scale(x, y):
    ask(x)
    rows, columns = x.shape
    if x.data_ptr() % 16:
        scale_plain[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), 1024)
        return
    described = [TensorDescriptor(t, [rows, columns], [columns, 1], [16, 64]) for t in (x, y)]
    scale_tma[lambda a: (triton.cdiv(rows, a["ROWS"]),)](*described, rows)


def scale_with_device_descriptors(x, y):
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    scale_on_device[(4,)](x, y, x.shape[0], 16)


def does_not_compile(x, y):
    broken[(1,)](x, 16)


def too_large(x, y):
    greedy[(1,)](x, y, 4096, 128, 64, num_stages=9)


def needs_data(x, y):
    if x.sum().item() > 0:  # the question
        scale(x, y)


def raises(x, y):
    raise ValueError("no such luck")  # the exception
