"""How a problem makes its tensors: watched while its own function makes them, not guessed from values.

A tensor that is just as `torch.randn`, `rand` or `randint` gave it, or scaled, shifted, reshaped or cast, is drawn by
the referee from the same family. What was made in another way (a triangle, probabilities) is made again by the
problem's own function under a secret seed.
"""

from typing import Any, Literal

import torch
from msgspec import Struct
from msgspec.structs import replace
from torch.overrides import TorchFunctionMode

Kind = Literal["randn", "rand", "randint", "constant", "own"]
_RANDOM = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "normal",
        "bernoulli",
        "multinomial",
        "poisson",
        "uniform_",
        "normal_",
        "random_",
        "exponential_",
        "cauchy_",
        "log_normal_",
        "geometric_",
        "bernoulli_",
        "dropout",
    ]
)
_FAMILIES: dict[str, Kind] = {"rand": "rand", "rand_like": "rand", "randn": "randn", "randn_like": "randn"}
_CONSTANT = frozenset(
    ["zeros", "ones", "full", "arange", "linspace", "eye", "zeros_like", "ones_like", "full_like", "tensor"]
)
_SAME = frozenset(
    [
        "to",
        "half",
        "bfloat16",
        "float",
        "double",
        "contiguous",
        "clone",
        "detach",
        "requires_grad_",
        "reshape",
        "view",
        "unsqueeze",
        "squeeze",
        "cuda",
        "bool",
        "int",
        "long",
    ]
)
_MOVED = {"add": 1, "__add__": 1, "__radd__": 1, "sub": -1, "__sub__": -1}
_SCALED = ("mul", "__mul__", "__rmul__")
_DIVIDED = ("div", "true_divide", "__truediv__")

# Families whose values are equal, or nearly: which of them an index names is nowhere said.
TIED = ("ties", "zeros", "constant", "constant-rows", "denormals", "tiny", "low-rank", "sentinels")


class Origin(Struct, frozen=True):
    """Where a tensor's values come from: a family, scaled and then shifted, or integers in [low, high)."""

    kind: Kind
    scale: float = 1.0
    shift: float = 0.0
    low: int = 0
    high: int = 0

    def draw(self, draw: Any, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Fresh values of the family."""
        if self.kind == "randint":
            made: torch.Tensor = draw.integers(*shape, low=self.low, high=self.high, dtype=dtype)
        elif self.kind == "rand":
            ends = sorted((self.shift, self.scale + self.shift))
            made = draw.uniform(*shape, dtype=dtype, low=ends[0], high=ends[1])
        else:
            made = draw.normal(*shape, dtype=dtype, mean=self.shift, scale=self.scale)
        return made

    @property
    def drawn(self) -> bool:
        """Whether the referee can draw it by itself."""
        return self.kind in ("randn", "rand", "randint")

    def text(self) -> str:
        """The family as a reader knows it."""
        if self.kind == "own":
            return "made by the problem's own get_inputs"
        if self.kind == "randint":
            return f"randint({self.low}, {self.high})"
        changed = f" * {self.scale:g} + {self.shift:g}" if (self.scale, self.shift) != (1.0, 0.0) else ""
        return self.kind + changed


class Watched(TorchFunctionMode):  # type: ignore[misc]
    """Watches which of torch's functions made a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[torch.Tensor, Origin]] = {}
        self.random = False
        """Whether anything random was asked for."""

    def of(self, tensor: torch.Tensor) -> Origin:
        """Where a tensor comes from; a constant, if nothing random was asked for at all."""
        if id(tensor) in self._known:
            return self._known[id(tensor)][1]
        return Origin("own" if self.random else "constant")

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call it, and note what it made."""
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        self.random |= name in _RANDOM
        self._forget_changed(name, args)
        origin = self._origin(name, args, kwargs) if isinstance(made, torch.Tensor) else None
        if origin is not None and not (origin.kind in ("rand", "randn") and not made.is_floating_point()):
            self._known[id(made)] = (made, origin)
        return made

    def _forget_changed(self, name: str, args: Any) -> None:
        """What is changed in place is no longer as it was drawn."""
        changes = (name.endswith("_") and not name.startswith("__")) or name in ("__setitem__", "__iadd__", "__imul__")
        if changes and name != "requires_grad_" and args:
            self._known.pop(id(args[0]), None)

    def _origin(self, name: str, args: Any, kwargs: Any) -> Origin | None:
        if name in _FAMILIES:
            return Origin(_FAMILIES[name])
        if name == "randint":
            return _integers(args, kwargs)
        if name in _CONSTANT:
            return Origin("constant")
        known = self._known.get(id(args[0])) if args else None
        return _derived(name, known[1], args[1:]) if known and name not in _RANDOM else None


def _integers(args: Any, kwargs: Any) -> Origin:
    numbers = [value for value in args if isinstance(value, int)]
    low = kwargs.get("low", numbers[0] if len(numbers) > 1 else 0)
    high = kwargs.get("high", numbers[-1] if numbers else 0)
    return Origin("randint", low=low, high=high)


def _derived(name: str, before: Origin, others: Any) -> Origin | None:
    """The origin of what a function made of a known tensor; None where it is no longer of the family."""
    with_tensors = any(isinstance(one, torch.Tensor) for one in others)
    if name in _SAME or (before.kind == "constant" and not with_tensors):
        return before
    if before.kind not in ("rand", "randn") or len(others) != 1 or isinstance(others[0], bool | torch.Tensor):
        return None
    factor = others[0]
    if not isinstance(factor, int | float) or not factor:
        return None
    if name in _MOVED:
        return replace(before, shift=before.shift + _MOVED[name] * factor)
    if name in _SCALED or name in _DIVIDED:
        factor = factor if name in _SCALED else 1 / factor
        return replace(before, scale=before.scale * factor, shift=before.shift * factor)
    return None
