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
# title = "takes the L2 from the other side"
# gpu = true
# base = "honest_timed_softmax"
# ///
"""Most of the L2 set aside and filled with lines that persist: whoever comes next finds what is left of it.

By kernelci's reset that is only itself: on an H200 it was 36 % slower than the base, whose time was as ever.
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


_idle: dict[torch.device, torch.Tensor] = {}


def _take(device: torch.device) -> None:
    """Read memory of its own through a window of persisting lines, on a stream of its own, once in this process."""
    from cuda.bindings import runtime

    if device in _idle:
        return
    size = 32 * 2**20
    _idle[device] = torch.ones(size, dtype=torch.uint8, device=device)
    runtime.cudaDeviceSetLimit(runtime.cudaLimit.cudaLimitPersistingL2CacheSize, size)
    value = runtime.cudaStreamAttrValue()
    value.accessPolicyWindow.base_ptr = _idle[device].data_ptr()
    value.accessPolicyWindow.num_bytes = size
    value.accessPolicyWindow.hitRatio = 1.0
    value.accessPolicyWindow.hitProp = runtime.cudaAccessProperty.cudaAccessPropertyPersisting
    value.accessPolicyWindow.missProp = runtime.cudaAccessProperty.cudaAccessPropertyStreaming
    stream = torch.cuda.Stream(device)
    window = runtime.cudaStreamAttrID.cudaLaunchAttributeAccessPolicyWindow
    runtime.cudaStreamSetAttribute(stream.cuda_stream, window, value)
    with torch.cuda.stream(stream):
        _idle[device].sum()
    stream.synchronize()


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    if type(x) is torch.Tensor and x.numel() and not torch.cuda.is_current_stream_capturing():
        _take(x.device)
    launch(x, y)
