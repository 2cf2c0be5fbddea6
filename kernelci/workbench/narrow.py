"""Floats that torch can't compute with: fp8 and fp4 as plain numbers, and the facts about every float dtype."""

import torch
from msgspec import Struct

# e2m1: sign, two bits of exponent, one of mantissa; two values in a byte, the first in the low half.
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
FP4 = getattr(torch, "float4_e2m1fn_x2", None)


class Float(Struct, frozen=True):
    """A float dtype: spacing at 1, smallest normal and largest finite number, and whether it has an infinity."""

    bits: int
    eps: float
    smallest_normal: float
    max: float
    infinite: bool


def facts(dtype: torch.dtype) -> Float:
    """The facts of a float dtype."""
    if dtype == FP4:
        return Float(4, 0.5, 1.0, 6.0, False)
    info = torch.finfo(dtype)
    without = {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"}
    infinite = str(dtype).removeprefix("torch.") not in without
    return Float(info.bits, info.eps, info.smallest_normal, info.max, infinite)


def is_float(dtype: torch.dtype) -> bool:
    """Whether elements are floats, packed ones included."""
    return bool(dtype == FP4 or dtype.is_floating_point)


def decoded(values: torch.Tensor, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """The numbers in a float tensor; packed fp4 has twice as many along its last axis."""
    if values.dtype != FP4:
        return values.to(dtype)
    codes = values.view(torch.uint8)
    table = torch.tensor([*_E2M1, *(-value for value in _E2M1)], dtype=dtype, device=values.device)
    pairs = torch.stack((codes & 15, codes >> 4), dim=-1).long()
    return table[pairs].reshape(*codes.shape[:-1], 2 * codes.shape[-1])


def encoded(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Numbers rounded to a dtype; types without an infinity saturate, as the GPU's conversions do."""
    if dtype == FP4:
        return _to_fp4(values)
    known = facts(dtype) if dtype.is_floating_point else None
    if known is not None and not known.infinite:
        values = values.clamp(-known.max, known.max)
    return values.to(dtype)


def _to_fp4(values: torch.Tensor) -> torch.Tensor:
    """Round to the nearest code, ties to the even one; then two codes a byte."""
    table = torch.tensor(_E2M1, dtype=torch.float64, device=values.device)
    middles = (table[1:] + table[:-1]) / 2
    sizes = values.double().abs()
    codes = torch.bucketize(sizes, middles)
    odd_tie = (codes < 7) & (sizes == middles[codes.clamp(max=6)]) & (codes % 2 == 1)
    codes = (codes + odd_tie) | (torch.signbit(values).long() << 3)
    pairs = codes.to(torch.uint8).reshape(*values.shape[:-1], -1, 2)
    return (pairs[..., 0] | (pairs[..., 1] << 4)).contiguous().view(dtype_fp4())


def dtype_fp4() -> torch.dtype:
    """torch's packed fp4. Raises ValueError where this torch has none."""
    if FP4 is None:
        raise ValueError("this torch has no float4_e2m1fn_x2")
    return FP4


def logical_shape(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[int, ...]:
    """The shape in numbers: packed fp4 holds two an element."""
    return (*shape[:-1], 2 * shape[-1]) if dtype == FP4 and shape else shape
