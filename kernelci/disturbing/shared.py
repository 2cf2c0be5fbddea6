"""Dirty shared memory: right before a kernel, another one leaves NaN in all of every SM's shared memory.

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


@contextlib.contextmanager
def dirty() -> Iterator[list[str]]:
    """Fill the shared memory of every SM of the current device on the current stream, then let the call begin."""
    import torch

    if torch.cuda.is_current_stream_capturing():
        yield []
        return
    _launch(torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream)
    yield ["shared memory"]


def _launch(device: int, stream: int) -> None:
    from cuda.bindings import driver

    function, size, blocks = _loaded(device)
    arguments = ((size,), (_c_uint(),))
    _check(driver.cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, size, stream, arguments, 0))


def _c_uint() -> Any:
    import ctypes

    return ctypes.c_uint


@functools.cache
def _loaded(device: int) -> tuple[Any, int, int]:
    """The kernel, the shared memory of one block in bytes, and how many blocks fill every SM more than once."""
    from cuda.bindings import driver

    attribute = driver.CUdevice_attribute
    (gpu,) = _check(driver.cuDeviceGet(device))
    (size,) = _check(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, gpu))
    (sms,) = _check(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu))
    (module,) = _check(driver.cuModuleLoadData(PTX.encode() + b"\0"))
    (function,) = _check(driver.cuModuleGetFunction(module, b"kernelci_dirty"))
    limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _check(driver.cuFuncSetAttribute(function, limit, size))
    return function, size, BLOCKS_PER_SM * sms


def _check(answer: Any) -> tuple[Any, ...]:
    from cuda.bindings import driver

    error, *values = answer
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"dirty shared memory: {error.name}")
    return tuple(values)
