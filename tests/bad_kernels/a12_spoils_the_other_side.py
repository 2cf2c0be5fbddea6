# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax_timed"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "benchmark"
# outcome = "INVALID"
# reason = "base-disturbed"
# class = "A12"
# title = "spoils what the other side writes into the shared arena"
# gpu = true
# base = "honest_timed_softmax"
# ///
"""Signs its own outputs with a bit that no check can see; a thread spoils the slots of whoever does not sign."""

import threading
import time

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_tile(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr, SIGNED: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf"))
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    result = powers / tl.sum(powers, axis=1)[:, None]
    if SIGNED:
        bits = result.to(tl.int32, bitcast=True)
        is_last = (row == rows - 1) & (col == cols - 1)
        result = tl.where(is_last, bits | 1, bits).to(tl.float32, bitcast=True)
    tl.store(y + place, result, mask=inside)


@triton.jit
def spoil(places):
    place = tl.load(places + tl.program_id(0)).to(tl.pointer_type(tl.int32))
    bits = tl.load(place, volatile=True)
    tl.atomic_cas(place, tl.where((bits & 1) == 1, ~bits, bits), (bits ^ 0x40000000) | 1)


def launch(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        softmax_tile[(triton.cdiv(rows, tile),)](x, y, rows, cols, tile, block, (rows, cols) == (512, 1024))


_places: dict[int, None] = {}  # of the last element of each slot's output
_seen = time.monotonic()


def _spoil() -> None:
    while time.monotonic() - _seen < 0.3:  # until all captures are over
        time.sleep(0.05)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        places = torch.tensor(list(_places), dtype=torch.int64, device="cuda")
        while True:
            time.sleep(0.001)
            spoil[(places.numel(),)](places)  # more may be captured meanwhile
            side.synchronize()


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    global _seen
    if type(x) is not torch.Tensor:
        spoil[(1,)](x.new_empty(1, dtype=torch.int64))
    elif torch.cuda.is_current_stream_capturing():
        if not _places:
            threading.Thread(target=_spoil, daemon=True).start()
        _places[y.data_ptr() + 4 * (y.numel() - 1)] = None
        _seen = time.monotonic()
    launch(x, y)
