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
# class = "A8"
# title = "keeps the GPU busy while the other side has its turn"
# gpu = true
# ///
"""While it is not called itself, a thread lets one kernel after the other spin; the GPU's time is shared by halves."""

import threading
import time

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


@triton.jit
def burn(y, count):
    value = tl.program_id(0).to(tl.float32)
    for _ in range(count):
        value = tl.sin(value)
    tl.store(y + tl.program_id(0), value)


def _burn(y: torch.Tensor, count: int) -> None:
    burn[(len(y),)](y, count)


def _spin() -> None:
    side = torch.cuda.Stream()
    while True:
        time.sleep(0.0005)
        with _lock:
            if time.monotonic() - _seen > 0.03:
                with torch.cuda.stream(side):
                    _burn(_results[0], 100_000)  # some milliseconds
                side.synchronize()


def _is_captured(x: torch.Tensor) -> bool:
    return type(x) is torch.Tensor and torch.cuda.is_current_stream_capturing()


_threads: list[threading.Thread] = []
_results: list[torch.Tensor] = []


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    if type(x) is torch.Tensor:
        _called()
        if not _results:
            _results.append(torch.empty(132, device=x.device))
            _burn(_results[0], 1)  # is compiled now
    if _is_captured(x) and not _threads:
        _threads.append(threading.Thread(target=_spin, daemon=True))
        _threads[0].start()
    launch(x, y)
