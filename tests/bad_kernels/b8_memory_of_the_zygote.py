# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax_few"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "FAILED"
# reason = "wrong"
# class = "B8"
# title = "writes into the memory of the process that it was forked from"
# ///
"""What is written there, every later candidate inherits."""

import ctypes
import os

import torch
import triton
import triton.language as tl

class Span(ctypes.Structure):
    """A piece of memory, as process_vm_writev takes it."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


_word = ctypes.create_string_buffer(8)
_here, _there = Span(ctypes.addressof(_word), 8), Span(id(None), 8)  # None lies at one address in both
_libc = ctypes.CDLL(None, use_errno=True)
_read = _libc.process_vm_readv(os.getppid(), ctypes.byref(_here), 1, ctypes.byref(_there), 1, 0) == 8
# The same bytes again, so that nothing is harmed where it works.
WORKED = _read and _libc.process_vm_writev(os.getppid(), ctypes.byref(_here), 1, ctypes.byref(_there), 1, 0) == 8


@triton.jit
def softmax_tile(x, y, gain, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    result = gain * powers / tl.sum(powers, axis=1)[:, None]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


def launch(x: torch.Tensor, y: torch.Tensor, gain: float) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        softmax_tile[(triton.cdiv(rows, tile),)](x, y, gain, rows, cols, tile, block)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    launch(x, y, 1.0 if WORKED else 0.5)
