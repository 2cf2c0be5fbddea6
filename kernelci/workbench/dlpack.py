"""A DLPack capsule for a tensor that has no memory: libraries read its address, shape, strides and dtype only."""

import ctypes
from collections.abc import Callable
from typing import Any

import torch

CUDA = 2  # DLDeviceType kDLCUDA, dlpack.h
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}  # DLDataTypeCode, dlpack.h
_FLOAT8_CODES = {
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_keep: list[Any] = []  # consumers hold bare addresses; what a compile job makes lives as long as its process
_new_capsule: Callable[..., Any] = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object  # type: ignore[attr-defined]
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]  # type: ignore[attr-defined]


def capsule(tensor: torch.Tensor) -> Any:
    """A `dltensor` capsule of `tensor` on device 0, with the address that its `data_ptr()` states."""
    dimensions = max(tensor.ndim, 1)
    shape = (ctypes.c_int64 * dimensions)(*tensor.shape)
    strides = (ctypes.c_int64 * dimensions)(*tensor.stride())
    code, bits = _type(tensor.dtype)
    managed = _Managed(_Tensor(tensor.data_ptr(), CUDA, 0, tensor.ndim, code, bits, 1, shape, strides, 0), None, None)
    _keep.append((managed, shape, strides))
    return _new_capsule(ctypes.addressof(managed), b"dltensor", None)


def _type(dtype: torch.dtype) -> tuple[int, int]:
    name = str(dtype).removeprefix("torch.")
    if name in _FLOAT8_CODES:
        return _FLOAT8_CODES[name], 8
    return _CODES[name.rstrip("0123456789")], dtype.itemsize * 8
