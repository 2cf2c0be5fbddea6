# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax_few"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "run"
# outcome = "FAILED"
# reason = "not-returned"
# class = "A3"
# title = "returns a tensor subclass that computes when it is looked at"
# ///
"""The result is a subclass whose every use launches the kernel first."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_tile(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    result = powers / tl.sum(powers, axis=1)[:, None]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


def launch(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        softmax_tile[(triton.cdiv(rows, tile),)](x, y, rows, cols, tile, block)


class Lazy(torch.Tensor):
    """Computes at the first operation on it."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        for value in args:
            if isinstance(value, Lazy) and hasattr(value, "source"):
                launch(value.__dict__.pop("source"), value.as_subclass(torch.Tensor))
        return super().__torch_function__(function, types, args, kwargs or {})


def softmax(x: torch.Tensor) -> torch.Tensor:
    if type(x) is not torch.Tensor:
        y = torch.empty_like(x)
        launch(x, y)
        return y
    lazy = torch.empty_like(x).as_subclass(Lazy)
    lazy.source = x
    return lazy
