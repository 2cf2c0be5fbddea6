"""Kernels of ours beside the one that is called: one that leaves NaN in all of every SM's shared memory right before
it, and one that holds half of the SMs while it runs.

Shared memory is not cleared between kernels of a process, so what a kernel reads without having written
it is whatever the last one left; in most tests that is its own answer of the call before.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

THREADS = 1024
BLOCKS_PER_SM = 2
# 0x7ff17ff1 is NaN as fp16, bf16, fp32 and, twice, as fp64.
PTX = """
.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 kernelci_words[];
.visible .entry kernelci_dirty(.param .u32 size)
.maxntid 1024, 1, 1
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    ld.param.u32 %r1, [size];
    mov.u32 %r2, %tid.x;
    shl.b32 %r2, %r2, 2;
    mov.u32 %r3, kernelci_words;
    mov.u32 %r5, 0x7ff17ff1;
FILL:
    setp.ge.u32 %p, %r2, %r1;
    @%p bra FULL;
    add.u32 %r4, %r3, %r2;
    st.volatile.shared.u32 [%r4], %r5;
    add.u32 %r2, %r2, 4096;
    bra FILL;
FULL:
    ret;
}
"""


# Holds its SM, by taking all of its shared memory, for so many nanoseconds, and then ends by itself.
BUSY_NS = 2_000_000
BUSY = """
.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 kernelci_words[];
.visible .entry kernelci_busy(.param .u64 nanoseconds)
{
    .reg .pred %p;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [nanoseconds];
    mov.u64 %rd2, %globaltimer;
WAIT:
    mov.u64 %rd3, %globaltimer;
    sub.u64 %rd3, %rd3, %rd2;
    setp.lt.u64 %p, %rd3, %rd1;
    @%p bra WAIT;
    ret;
}
"""


@contextlib.contextmanager
def busy() -> Iterator[list[str]]:
    """Let a kernel on a stream of its own hold half of the SMs, for two milliseconds from now."""
    import ctypes

    import torch

    if torch.cuda.is_current_stream_capturing():
        yield []
        return
    device = torch.cuda.current_device()
    function, size, sms = _loaded(device, BUSY, "kernelci_busy")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    _launch(function, max(1, sms // 2), 32, size, stream.cuda_stream, BUSY_NS, ctypes.c_uint64)
    yield ["half of the SMs"]


@contextlib.contextmanager
def dirty() -> Iterator[list[str]]:
    """Fill the shared memory of every SM of the current device on the current stream, then let the call begin."""
    import ctypes

    import torch

    if torch.cuda.is_current_stream_capturing():
        yield []
        return
    function, size, sms = _loaded(torch.cuda.current_device(), PTX, "kernelci_dirty")
    stream = torch.cuda.current_stream().cuda_stream
    _launch(function, BLOCKS_PER_SM * sms, THREADS, size, stream, size, ctypes.c_uint)
    yield ["shared memory"]


def _launch(function: Any, blocks: int, threads: int, size: int, stream: int, argument: int, kind: Any) -> None:
    from cuda.bindings import driver

    arguments = ((argument,), (kind,))
    _check(driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, size, stream, arguments, 0))


@functools.cache
def _loaded(device: int, ptx: str, name: str) -> tuple[Any, int, int]:
    """The kernel, the shared memory in bytes that a block of it takes (all that one may), and the number of SMs."""
    from cuda.bindings import driver

    attribute = driver.CUdevice_attribute
    (gpu,) = _check(driver.cuDeviceGet(device))
    most = attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    (size,) = _check(driver.cuDeviceGetAttribute(most, gpu))
    (sms,) = _check(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu))
    (module,) = _check(driver.cuModuleLoadData(ptx.encode() + b"\0"))
    (function,) = _check(driver.cuModuleGetFunction(module, name.encode()))
    limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _check(driver.cuFuncSetAttribute(function, limit, size))
    return function, size, sms


def _check(answer: Any) -> tuple[Any, ...]:
    from cuda.bindings import driver

    error, *values = answer
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {error.name}")
    return tuple(values)
