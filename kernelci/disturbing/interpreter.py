"""Disturbances of Triton's interpreter, where neither warps nor shared memory exist."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

NAN16 = 0x7FF1  # NaN as fp16 and as bf16, which the interpreter keeps as 16-bit integers
LARGE = 0x7FF1  # for integers


@contextlib.contextmanager
def fill() -> Iterator[list[str]]:
    """Lanes that a load's mask leaves out read NaN (integers: a large number) where the kernel names no `other`."""
    from triton.runtime import interpreter

    made: list[str] = []
    load = interpreter.InterpreterBuilder.create_masked_load

    def filled(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **more: Any) -> Any:
        if other is None and not mask.data.all():
            other = _garbage(interpreter, ptrs)
            made.append("masked load")
        return load(self, ptrs, mask, other, *rest, **more)

    with mock.patch.object(interpreter.InterpreterBuilder, "create_masked_load", filled):
        yield made


def _garbage(interpreter: Any, ptrs: Any) -> Any:
    import numpy as np

    element = ptrs.get_element_ty()
    dtype = np.dtype(interpreter._get_np_dtype(element))
    if dtype.kind == "f":
        value: float = float("nan")
    else:
        value = NAN16 if dtype.itemsize == 2 else LARGE & np.iinfo(dtype).max if dtype.kind in "iu" else 1
    return interpreter.TensorHandle(np.full(ptrs.data.shape, value, dtype), element)


@contextlib.contextmanager
def order() -> Iterator[list[str]]:
    """Blocks run from the last to the first."""
    from triton.runtime import interpreter

    made: list[str] = []
    place = interpreter.InterpreterBuilder.set_grid_idx

    def reversed_(self: Any, x: int, y: int, z: int) -> None:
        grid = self.grid_dim
        if any(size > 1 for size in grid):
            made.append("block")
        place(self, *(size - 1 - at for size, at in zip(grid, (x, y, z), strict=True)))

    with mock.patch.object(interpreter.InterpreterBuilder, "set_grid_idx", reversed_):
        yield made
