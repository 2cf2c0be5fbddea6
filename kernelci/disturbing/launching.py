"""Other launch options for Triton kernels: the same source, another number of warps, say, or no fused arithmetic."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

# Of triton.backends.nvidia.compiler.CUDAOptions.
DEFAULTS: dict[str, Any] = {"num_warps": 4, "num_stages": 3, "enable_fp_fusion": True, "debug": False}


@contextlib.contextmanager
def overridden(option: str, change: Callable[[Any], Any]) -> Iterator[list[str]]:
    """Every launch gets the option changed, whether the kernel, its autotuner or nobody named it."""
    from triton.runtime import jit

    made: list[str] = []
    run = jit.JITFunction.run

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = DEFAULTS[option] if kwargs.get(option) is None else kwargs[option]
        kwargs[option] = change(given)
        if kwargs[option] != given:
            made.append(f"{option}={kwargs[option]} for {given}")
        return run(self, *args, **kwargs)

    with mock.patch.object(jit.JITFunction, "run", launched):
        yield made
