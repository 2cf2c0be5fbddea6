# /// script
# dependencies = ["cuda-core>=1.0", "cuda-bindings>=13", "torch>=2.8"]
# [tool.kernelci]
# reference = "softmax_few"
# backend = "cuda"
# entry = "softmax"
# targets = ["sm_90a"]
# [tool.kernelci.expect]
# rung = "sanitize"
# outcome = "FAILED"
# reason = "sanitizer-initcheck"
# class = "X5"
# title = "reads its output before anything wrote it"
# gpu = true
# tier = "full"
# ///
"""What was in the output counts for nothing here, and yet it is read."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import torch
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, Stream, launch

THREADS = 128
TYPES = {torch.float32: "Float32", torch.float16: "Float16", torch.bfloat16: "BFloat16"}


@lru_cache
def build(arch: str, dtype: torch.dtype) -> ObjectCode:
    """Compile for `arch` ("sm_90a"); needs no GPU."""
    source = Path(__file__).with_suffix(".cu")
    options = ProgramOptions(name=str(source), arch=arch, std="c++17", lineinfo=True)
    program = Program(source.read_text(), "c++", options)
    return program.compile("cubin", name_expressions=(f"softmax_row<{TYPES[dtype]}>",))


def compile(case, target: str) -> Iterator[ObjectCode]:
    """Yield what `softmax` launches for this case."""
    yield build(target, case.dtype)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, cols = x.shape
    if x.numel() == 0:
        return
    device = x.device.index or 0
    Device(device).set_current()
    major, minor = torch.cuda.get_device_capability(device)
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    kernel = build(arch, x.dtype).get_kernel(f"softmax_row<{TYPES[x.dtype]}>")
    stream = Stream.from_handle(torch.cuda.current_stream(device).cuda_stream)
    launch(stream, LaunchConfig(grid=rows, block=THREADS), kernel, x.data_ptr(), y.data_ptr(), cols)
