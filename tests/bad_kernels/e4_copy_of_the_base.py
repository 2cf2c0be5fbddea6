# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax_timed"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "benchmark"
# outcome = "PASSED"
# class = "E4"
# title = "a copy of the base with other names, claimed as an improvement"
# gpu = true
# base = "honest_timed_softmax"
# verdicts = ["SAME", "UNKNOWN"]
# said = "byte for byte"
# ///
"""Twice as fast as before, says its author."""

import torch
import triton
import triton.language as tl


@triton.jit
def turbo_rows(source, target, height, width, DEPTH: tl.constexpr, LANES: tl.constexpr):
    # One block takes DEPTH rows.
    line = tl.program_id(0) * DEPTH + tl.arange(0, DEPTH)[:, None]
    lane = tl.arange(0, LANES)[None, :]
    valid = (line < height) & (lane < width)
    spot = line.to(tl.int64) * width + lane
    loaded = tl.load(source + spot, mask=valid, other=float("-inf")).to(tl.float32)
    highest = tl.where(line < height, tl.max(loaded, axis=1)[:, None], 0.0)
    grown = tl.exp(loaded - highest)
    share = grown / tl.sum(grown, axis=1)[:, None]
    tl.store(target + spot, share.to(target.dtype.element_ty), mask=valid)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Normalise each row of x, fast."""
    height, width = x.shape
    if not x.numel():
        return
    lanes = max(16, triton.next_power_of_2(width))
    depth = max(1, 1024 // lanes)
    turbo_rows[(triton.cdiv(height, depth),)](x, y, height, width, depth, lanes)
