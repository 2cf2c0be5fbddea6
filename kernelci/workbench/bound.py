"""A call of an entry on certain tensors, and what becomes of what it returns (the untrusted side)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from kernelci.workbench.protocol import Returned


class BoundCall:
    """A call of an entry, ready to be made; `raw` makes it and leaves what it returns where that is."""

    def __init__(self, entry: Any, arguments: dict[str, Any], outputs: dict[str, Any], in_place: bool) -> None:
        self.raw = partial(entry, **arguments, **outputs) if in_place else partial(entry, **arguments)
        self.in_place = in_place
        self._outputs = outputs

    def __call__(self) -> dict[str, Returned]:
        """Make the call, and place what it returned; what an entry that writes in place returns does not matter."""
        result = self.raw()
        return {} if self.in_place else _place(result, self._outputs)


def named(result: Any, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry returned, by output."""
    if isinstance(result, dict):
        return result
    return dict(zip(outputs, result if isinstance(result, tuple | list) else (result,), strict=False))


def is_plain(value: Any) -> bool:
    """Whether a result is a tensor that has all its values, and no subclass that may compute them later."""
    import torch

    return type(value) in (torch.Tensor, torch.nn.Parameter)


def _place(result: Any, outputs: Mapping[str, Any]) -> dict[str, Returned]:
    """Copy returned tensors to where the referee reads them; what does not fit is only described."""
    found = named(result, outputs)
    described: dict[str, Returned] = {}
    for name, place in outputs.items():
        value: Any = found.get(name)
        if not is_plain(value):
            continue
        described[name] = Returned(tuple(value.shape), str(value.dtype).removeprefix("torch."))
        if value.shape == place.shape and value.dtype == place.dtype:
            place.copy_(value.detach())
    return described
