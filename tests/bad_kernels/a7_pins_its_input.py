# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax_timed"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80"]
# [tool.kernelci.expect]
# rung = "benchmark"
# outcome = "FAILED"
# reason = "slower"
# class = "A7"
# title = "pins its input in the L2"
# gpu = true
# base = "honest_timed_softmax"
# ///
"""A persisting access window keeps the input in the L2 through a flush; fresh values elsewhere are not there.

Setting its limit can't be captured, so both sides are launched from the host, where it takes as long as the work: on an
H200 it was twice as slow as the base.
"""

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


def _pin(x: torch.Tensor) -> None:
    from cuda.bindings import runtime

    size = min(x.numel() * x.element_size(), 16 * 2**20)
    runtime.cudaDeviceSetLimit(runtime.cudaLimit.cudaLimitPersistingL2CacheSize, 64 * 2**20)
    value = runtime.cudaStreamAttrValue()
    value.accessPolicyWindow.base_ptr = x.data_ptr()
    value.accessPolicyWindow.num_bytes = size
    value.accessPolicyWindow.hitRatio = 1.0
    value.accessPolicyWindow.hitProp = runtime.cudaAccessProperty.cudaAccessPropertyPersisting
    value.accessPolicyWindow.missProp = runtime.cudaAccessProperty.cudaAccessPropertyStreaming
    window = runtime.cudaStreamAttrID.cudaLaunchAttributeAccessPolicyWindow
    runtime.cudaStreamSetAttribute(torch.cuda.current_stream().cuda_stream, window, value)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    if type(x) is torch.Tensor and x.numel():
        _pin(x)
    launch(x, y)
