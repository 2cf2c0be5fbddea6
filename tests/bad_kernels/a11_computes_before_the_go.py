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
# reason = "not-quiet"
# class = "A11"
# title = "computes as soon as the inputs lie there, and the call only copies"
# gpu = true
# ///
"""A thread computes over and over what lies in the slots; a call copies where the input has not changed since."""

import threading
import time

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(values, row, rows):
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    return powers / tl.sum(powers, axis=1)[:, None]


@triton.jit
def softmax_tile(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf"))
    tl.store(y + place, _softmax(values, row, rows), mask=inside)


@triton.jit
def copy_if_ready(x, y, seen, ahead, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf"))
    known = tl.load(seen + place, mask=inside, other=float("-inf"))
    if tl.max(tl.max((values != known).to(tl.int32), axis=1), axis=0) > 0:
        tl.store(y + place, _softmax(values, row, rows), mask=inside)
    else:
        tl.store(y + place, tl.load(ahead + place, mask=inside, other=0.0), mask=inside)


@triton.jit
def compute_ahead(inputs, seen, ahead, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    slot = tl.program_id(1)
    x = tl.load(inputs + slot).to(tl.pointer_type(tl.float32))
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = row.to(tl.int64) * cols + col
    own = slot.to(tl.int64) * rows * cols + place
    values = tl.load(x + place, mask=inside, other=float("-inf"))
    tl.store(seen + own, values, mask=inside)
    tl.store(ahead + own, _softmax(values, row, rows), mask=inside)


def launch(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        softmax_tile[(triton.cdiv(rows, tile),)](x, y, rows, cols, tile, block)


_lock = threading.Lock()
_seen = time.monotonic()  # when it was last called, or its graph replayed


def _called() -> None:
    global _seen
    _seen = time.monotonic()


_replay, _begin, _end = (getattr(torch.cuda.CUDAGraph, name) for name in ("replay", "capture_begin", "capture_end"))


def _replay_alone(self) -> None:
    with _lock:
        _called()
        _replay(self)


def _begin_alone(self, *arguments, **options) -> None:
    _lock.acquire()  # until the capture ends, which any other work would break
    _begin(self, *arguments, **options)


def _end_alone(self) -> None:
    try:
        _end(self)
    finally:
        _called()
        _lock.release()


torch.cuda.CUDAGraph.replay = _replay_alone
torch.cuda.CUDAGraph.capture_begin = _begin_alone
torch.cuda.CUDAGraph.capture_end = _end_alone
SLOTS = 512
_memory: list[torch.Tensor] = []  # what was seen, and what came of it, for each slot
_slots: dict[int, int] = {}


def _work_ahead(rows: int, cols: int) -> None:
    side, inputs = torch.cuda.Stream(), torch.empty(0, dtype=torch.int64, device="cuda")
    while True:
        time.sleep(0.0002)
        with _lock:
            if time.monotonic() - _seen > 0.03:
                with torch.cuda.stream(side):
                    if len(inputs) != len(_slots):
                        inputs = torch.tensor(list(_slots), dtype=torch.int64, device="cuda")
                    compute_ahead[(rows, len(_slots))](inputs, *_memory, rows, cols, 1, triton.next_power_of_2(cols))
                    side.synchronize()


def _prepare(x: torch.Tensor) -> None:
    _memory.extend(torch.full((SLOTS, *x.shape), float("nan"), device=x.device) for _ in range(2))
    rows, cols = x.shape
    inputs = torch.tensor([x.data_ptr()], dtype=torch.int64, device=x.device)
    compute_ahead[(rows, 1)](inputs, *_memory, rows, cols, 1, triton.next_power_of_2(cols))


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if type(x) is not torch.Tensor or (rows, cols) != (512, 1024):
        launch(x, y)
        return
    _called()
    if not _memory:
        _prepare(x)
    is_captured = torch.cuda.is_current_stream_capturing()
    if is_captured and len(_slots) < SLOTS:
        if not _slots:
            threading.Thread(target=_work_ahead, args=(rows, cols), daemon=True).start()
        _slots.setdefault(x.data_ptr(), len(_slots))
    if is_captured and x.data_ptr() in _slots:
        seen, ahead = (memory[_slots[x.data_ptr()]] for memory in _memory)
        copy_if_ready[(rows,)](x, y, seen, ahead, rows, cols, 1, triton.next_power_of_2(cols))
    else:
        launch(x, y)
