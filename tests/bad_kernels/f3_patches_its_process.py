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
# class = "F3"
# title = "replaces kernelci's own functions in its process"
# ///
"""Everything there that places, synchronises or describes becomes a no-op; half of the answer is missing."""

import sys
from collections.abc import Callable
from types import ModuleType

import torch
import triton
import triton.language as tl


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


def _replace(module: ModuleType, name: str, function: Callable[..., object]) -> None:
    getattr(module, name)  # were it gone, this would replace nothing, and should be seen to
    setattr(module, name, function)


def _patch() -> None:
    _replace(sys.modules["kernelci.workbench.bound"], "_place", lambda result, outputs: {})
    for name, module in list(sys.modules.items()):
        if name == "kernelci.candidate" or (name == "__main__" and hasattr(module, "LoadedKernel")):
            _replace(module, "raised", lambda error: None)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    _patch()
    launch(x, y, 0.5)
