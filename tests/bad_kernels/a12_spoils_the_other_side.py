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
from functools import lru_cache

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


MOST, CALM_S, EVERY_S = 2**14, 0.3, 0.002
_places: dict[int, None] = {}  # of the last element of each slot's output
_seen = time.monotonic()


@lru_cache
def _side() -> tuple[torch.cuda.Stream, torch.Tensor, torch.Tensor]:
    """A stream and room for the places, on the device and here: all that a thread may not do while others capture."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        room = torch.zeros(MOST, dtype=torch.int64, device="cuda")
        spoil[(1,)](torch.tensor([torch.ones(1, device="cuda").data_ptr()], device="cuda"))
    side.synchronize()
    return side, room, torch.zeros(MOST, dtype=torch.int64, pin_memory=True)


def _spoil() -> None:
    side, room, here = _side()
    while time.monotonic() - _seen < CALM_S:  # until most captures are over
        time.sleep(0.05)
    with torch.cuda.stream(side):
        while True:
            places = list(_places)[:MOST]
            here[: len(places)] = torch.tensor(places)
            room.copy_(here, non_blocking=True)
            spoil[(len(places),)](room)
            time.sleep(EVERY_S)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    global _seen
    if type(x) is not torch.Tensor:
        spoil[(1,)](x.new_empty(1, dtype=torch.int64))
    elif torch.cuda.is_current_stream_capturing():
        if not _places:
            threading.Thread(target=_spoil, daemon=True).start()
        _places[y.data_ptr() + 4 * (y.numel() - 1)] = None
        _seen = time.monotonic()
    elif x.is_cuda:
        _side()
    launch(x, y)
