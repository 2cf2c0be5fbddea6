"""Whatever a call compiles, compiled so that a multiplication and an addition stay two roundings (field check P7).

Fused multiply-adds that a source asks for itself (`fmaf`, `tl.fma`) stay.
"""

import contextlib
import copy
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

from kernelci.disturbing import launching
from kernelci.disturbing.compilers import replaced

NVCC = "--fmad=false"


def unfused(stack: contextlib.ExitStack) -> list[str]:
    """Under the stack's contexts, every DSL that is imported compiles so; what was made is listed."""
    made: list[str] = []
    if "triton" in sys.modules:
        made = stack.enter_context(launching.overridden("enable_fp_fusion", lambda fused: False))
    for module, change in (("tilelang", _tilelang), ("cuda.core", _cuda)):
        if module in sys.modules:
            stack.enter_context(change(made))
    return made


@contextlib.contextmanager
def _tilelang(made: list[str]) -> Iterator[None]:
    """A flag for the compiler of the CUDA C++ that TileLang generates."""
    from tilelang.contrib import nvcc

    compile_cuda = nvcc.compile_cuda

    def compiled(
        code: str, target_format: str = "ptx", arch: Any = None, options: Any = None, *rest: Any, **more: Any
    ) -> Any:
        given = [options] if isinstance(options, str) else list(options or [])
        made.append(NVCC)
        return compile_cuda(code, target_format, arch, [*given, NVCC], *rest, **more)

    with mock.patch.object(nvcc, "compile_cuda", compiled):
        yield


@contextlib.contextmanager
def _cuda(made: list[str]) -> Iterator[None]:
    """A `Program` of C++ whose options say so; other options are left as they are given."""
    import cuda.core
    from cuda.core import Program, ProgramOptions

    def unfused_program(code: Any, code_type: str, options: Any = None) -> Any:
        if code_type != "c++":
            return Program(code, code_type, options)
        given = copy.copy(options) if options is not None else ProgramOptions()
        given.fma = False
        made.append("fma=False")
        return Program(code, code_type, given)

    with replaced(cuda.core, Program, unfused_program):
        yield
