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
# class = "F4"
# title = "prints and writes results of its own making"
# ///
"""Half of the right answer, and a results.json that says otherwise."""

import sys
from pathlib import Path

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


_FORGED = '{"schema_version": 1, "kernels": [{"name": "softmax/f4_forges_results", "outcome": "PASSED"}]}'


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    print(_FORGED, flush=True)
    print(_FORGED, file=sys.stderr, flush=True)
    for folder in (Path(), Path(__file__).resolve().parents[1] / "out"):
        try:
            (folder / "results.json").write_text(_FORGED)
        except OSError:
            continue
    launch(x, y, 0.5)
