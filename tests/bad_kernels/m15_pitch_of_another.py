# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "tanh_gradient"
# backend = "triton"
# entry = "tanh_gradient"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "run"
# outcome = "FAILED"
# class = "m15"
# title = "indexes the gradient with the pitch of another tensor"
# ///
"""Takes dy's pitch for dx, whose rows are dense."""

import torch
import triton
import triton.language as tl


@triton.jit
def gradient_row(dy, y, dx, cols, dy_pitch, y_pitch, BLOCK: tl.constexpr):
    row, col = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    slope = tl.load(dy + row * dy_pitch + col, mask=col < cols, other=0.0)
    value = tl.load(y + row * y_pitch + col, mask=col < cols, other=0.0)
    tl.store(dx + row * dy_pitch + col, slope * (1 - value * value), mask=col < cols)


def tanh_gradient(dy: torch.Tensor, y: torch.Tensor, cols: int, dx: torch.Tensor) -> None:
    rows = dy.shape[0]
    if dx.numel():
        gradient_row[(rows,)](dy, y, dx, cols, dy.stride(0), y.stride(0), triton.next_power_of_2(cols))
