"""A case: one input setting of a reference, with its name. torch is imported only where a dtype is asked for."""

from typing import Any

from msgspec import Struct

from kernelci.errors import ReferenceFailed

SHORT = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float4_e2m1fn_x2": "e2m1",
}


class Case(Struct, frozen=True):
    """One input setting. Its sizes and parameters are attributes: `case.rows`, `case.dtype` (a torch.dtype).

    Those whose names begin with an underscore are not part of its name.
    """

    kind: str  # "check", "bench", or "hidden": drawn by the referee from the domain
    values: tuple[tuple[str, Any], ...]
    title: str = ""

    def __getattr__(self, name: str) -> Any:
        for key, value in self.values:
            if key == name:
                return torch_dtype(value) if key == "dtype" else value
        raise AttributeError(f"the case has no {name!r}; it has {', '.join(key for key, _ in self.values)}")

    @property
    def id(self) -> str:
        """A short name, fit for tables and file names: sizes in the declared order, then the rest: `17x1000-bf16`."""
        sizes = "x".join(str(value) for _, value in self.values if type(value) is int)
        rest = [
            SHORT.get(value, str(value)) if key == "dtype" else f"{key}{value}"
            for key, value in self.values
            if type(value) is not int and not key.startswith("_")
        ]
        return "-".join([part for part in (sizes, *rest) if part])

    def with_dtype(self, dtype: str) -> "Case":
        """The same case with other data."""
        return self.with_value("dtype", dtype)

    def with_value(self, name: str, value: Any) -> "Case":
        """The same case with another value of one of its parameters."""
        return Case(self.kind, tuple((k, value if k == name else v) for k, v in self.values), self.title)

    def resized(self, case_id: str) -> "Case | None":
        """The case with the sizes that stand in a name, if the rest of the name is its own."""
        sizes_text, _, rest = case_id.partition("-")
        own_sizes, _, own_rest = self.id.partition("-")
        numbers = sizes_text.split("x")
        same = rest == own_rest and len(numbers) == len(own_sizes.split("x"))
        if not same or not all(text.isdecimal() for text in numbers):
            return None
        values = iter(int(text) for text in numbers)
        return Case("hidden", tuple((key, next(values) if type(value) is int else value) for key, value in self.values))


def check(title: str = "", **values: Any) -> Case:
    """A case for correctness: odd, tiny, empty, no multiple of a tile."""
    return Case("check", tuple(values.items()), title)


def bench(title: str, **values: Any) -> Case:
    """A case for timing: the shape of a real model, which the title names."""
    return Case("bench", tuple(values.items()), title)


def torch_dtype(name: Any) -> Any:
    """torch's dtype of this name. Raises ReferenceFailed."""
    import torch

    found = getattr(torch, str(name).removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ReferenceFailed(f"no dtype {name!r}")
    return found
