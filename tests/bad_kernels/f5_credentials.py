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
# class = "F5"
# title = "finds credentials in environments and at home"
# ///
"""Looks for tokens and keys where they usually lie."""

import os
from pathlib import Path

import torch
import triton
import triton.language as tl

_FILES = (".ssh", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".docker/config.json", ".git-credentials")
_HOMES = {Path(os.path.expanduser("~")), Path("/root"), *Path("/home").glob("*")}


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


_SECRET = any(word in name for name in os.environ for word in ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"))
WORKED = _SECRET or any(_there(home / file) for home in _HOMES for file in _FILES)


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
