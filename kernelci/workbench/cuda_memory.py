"""GPU memory shared by a plain CUDA IPC handle (cuMemAlloc, cuIpcGetMemHandle, cuIpcOpenMemHandle).

torch's own sharing of CUDA tensors does not survive a sandbox; a plain handle does.
"""

import contextlib
from typing import Any

import torch


class CudaFailed(Exception):
    """A driver call failed; the message names it and CUDA's error."""


def _call(name: str, *args: Any) -> Any:
    from cuda.bindings import driver

    error, *values = getattr(driver, name)(*args)
    if int(error) != 0:
        raise CudaFailed(f"{name}: {error.name}")
    return values[0] if values else None


def _context(device: str) -> None:
    """Make torch's own context current, which is the device's primary one."""
    torch.cuda.set_device(device)
    torch.zeros(1, device=device)


def allocate(device: str, size: int) -> tuple[int, bytes]:
    """A new allocation of `size` bytes: its address, and a handle that another process can open."""
    _context(device)
    pointer = _call("cuMemAlloc", size)
    handle = _call("cuIpcGetMemHandle", pointer)
    return int(pointer), bytes(handle.reserved)


def open_handle(device: str, handle: bytes) -> int:
    """Map another process's allocation; its address here."""
    from cuda.bindings import driver

    _context(device)
    opened = driver.CUipcMemHandle()
    opened.reserved = handle
    flags = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
    return int(_call("cuIpcOpenMemHandle", opened, flags))


def close_handle(pointer: int) -> None:
    """Unmap what `open_handle` mapped."""
    from cuda.bindings import driver

    driver.cuIpcCloseMemHandle(pointer)


def nothing_persists(device: str) -> None:
    """Make every line of the L2 that a kernel marked as persisting (an access policy window) an ordinary one, so that
    none outlives the window of calls that it was marked in; nothing on the CPU, or where a GPU has no such lines.

    The driver says "all persisting lines in cache": those of other processes' contexts among them.
    """
    if device == "cpu":
        return
    torch.cuda.set_device(device)
    with contextlib.suppress(CudaFailed):
        _call("cuCtxResetPersistingL2Cache")


def free(pointer: int) -> None:
    """Give back what `allocate` gave."""
    from cuda.bindings import driver

    driver.cuMemFree(pointer)
