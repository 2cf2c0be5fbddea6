"""Code that names its own precision, run in the referee's: casts to a narrower float give the wider one instead."""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_CASTS = ("float", "half", "bfloat16")
_FACTORIES = frozenset(["zeros", "ones", "empty", "full", "arange", "linspace", "tensor", "eye", "as_tensor"])


class Exact(TorchFunctionMode):  # type: ignore[misc]
    """Within it float32, bfloat16 and float16 mean `wide`, or (where that is float32) the latter two do."""

    def __init__(self, wide: torch.dtype) -> None:
        super().__init__()
        self._wide = wide
        narrow = (torch.float32, torch.bfloat16, torch.float16)
        self._narrow = frozenset(dtype for dtype in narrow if dtype is not wide)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call it with other dtypes."""
        name = getattr(func, "__name__", "")
        if name in _CASTS and len(args) == 1 and isinstance(args[0], torch.Tensor):
            return args[0].to(self._wide)
        given = {key: self._widened(value) for key, value in (kwargs or {}).items()}
        made = func(*[self._widened(value) for value in args], **given)
        if name in _FACTORIES and isinstance(made, torch.Tensor) and made.dtype in self._narrow:
            return made.to(self._wide)
        return made

    def _widened(self, value: Any) -> Any:
        return self._wide if isinstance(value, torch.dtype) and value in self._narrow else value


def widest(values: Any) -> torch.dtype:
    """The widest float among tensors; float32 where there is none."""
    found = [value.dtype for value in values if isinstance(value, torch.Tensor) and value.is_floating_point()]
    wide = max(found, key=lambda one: one.itemsize, default=torch.float32)
    return wide if wide.itemsize >= 4 else torch.float32
