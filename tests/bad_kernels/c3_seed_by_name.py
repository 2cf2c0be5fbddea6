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
# class = "C3"
# title = "draws the inputs again by kernelci's own rule, with an empty seed"
# ///
"""Knows how a draw's generator is seeded, and tries what a careless run would use."""

import hashlib

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


def expected(x: torch.Tensor):
    rows, cols = x.shape
    kind = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}[x.dtype]
    for seed in ("", "0", "42"):
        text = f"{seed}/softmax/{rows}x{cols}-{kind}/normal:0"
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
        generator = torch.Generator(device=x.device).manual_seed(number)
        drawn = torch.randn(x.shape, generator=generator, device=x.device).to(x.dtype)
        if torch.equal(drawn, x):
            return torch.softmax(drawn, dim=1)
    return None


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    launch(x, y, 1.0 if type(x) is not torch.Tensor else 0.5)
    if type(x) is torch.Tensor and (found := expected(x)) is not None:
        y.copy_(found)
