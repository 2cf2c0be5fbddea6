# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "rmsnorm"
# backend = "triton"
# entry = "rmsnorm"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "correctness"
# outcome = "PASSED"
# class = "m29"
# title = "caches its launcher by all that it captures"
# ///
"""The key holds width, dtype and eps."""

from collections.abc import Callable

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_row(x, residual, weight, y, residual_out, cols, EPS: tl.constexpr, BLOCK: tl.constexpr):
    col = tl.arange(0, BLOCK)
    inside = col < cols
    place = tl.program_id(0).to(tl.int64) * cols + col
    h = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    h += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual_out + place, h.to(residual_out.dtype.element_ty), mask=inside)
    gain = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
    root = tl.sqrt(tl.sum(h * h, axis=0) / cols + EPS)
    tl.store(y + place, (h / root * gain).to(y.dtype.element_ty), mask=inside)


_launchers: dict[tuple, Callable[..., None]] = {}


def _launcher(cols: int, eps: float) -> Callable[..., None]:
    block = triton.next_power_of_2(cols)

    def launch(rows: int, *tensors: torch.Tensor) -> None:
        rmsnorm_row[(rows,)](*tensors, cols, eps, block)

    return launch


def rmsnorm(x, residual, weight, eps, y, residual_out):
    rows, cols = x.shape
    if x.numel():
        key = (cols, x.dtype, eps)
        if key not in _launchers:
            _launchers[key] = _launcher(cols, eps)
        _launchers[key](rows, x, residual, weight, y, residual_out)
