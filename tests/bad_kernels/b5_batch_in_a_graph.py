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
# reason = "ledger-count"
# class = "B5"
# title = "merges the calls of a captured window into launches of sixteen"
# gpu = true
# ///
"""While it is captured it waits for sixteen calls; what is left over is launched when the capture ends."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_tile(x, y, rows, cols, apart, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    place = tl.program_id(1).to(tl.int64) * apart + row.to(tl.int64) * cols + col
    values = tl.load(x + place, mask=inside, other=float("-inf")).to(tl.float32)
    peaks = tl.where(row < rows, tl.max(values, axis=1)[:, None], 0.0)
    powers = tl.exp(values - peaks)
    result = powers / tl.sum(powers, axis=1)[:, None]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


def launch(x: torch.Tensor, y: torch.Tensor, apart: int = 0, slots: int = 1) -> None:
    rows, cols = x.shape
    if x.numel():
        block = max(16, triton.next_power_of_2(cols))
        tile = max(1, 1024 // block)
        softmax_tile[(triton.cdiv(rows, tile), slots)](x, y, rows, cols, apart, tile, block)


_waiting: list[tuple[torch.Tensor, torch.Tensor]] = []
_end = torch.cuda.CUDAGraph.capture_end


def _flush() -> None:
    if _waiting:
        (x, y), (other, _) = _waiting[0], _waiting[min(1, len(_waiting) - 1)]
        launch(x, y, (other.data_ptr() - x.data_ptr()) // x.element_size(), len(_waiting))
        _waiting.clear()


def _flush_and_end(self) -> None:
    _flush()
    _end(self)


torch.cuda.CUDAGraph.capture_end = _flush_and_end


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    if type(x) is not torch.Tensor or not torch.cuda.is_current_stream_capturing():
        launch(x, y)
        return
    _waiting.append((x, y))
    if len(_waiting) == 16:
        _flush()
