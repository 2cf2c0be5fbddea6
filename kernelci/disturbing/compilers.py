"""Delays for whatever a call compiles: Triton's own stage hook, TileLang's compiler, cuda-core's Program.

What was compiled when the kernel's file was imported, and what another compiler makes, has none.
"""

import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from kernelci.disturbing.ptx import delayed as with_delays
from kernelci.workbench import cudacore, toolkit


def delayed(stack: contextlib.ExitStack) -> list[str]:
    """Under the stack's contexts, every DSL that is imported compiles with delays; what was made so is listed."""
    made: list[str] = []
    for module, change in (("triton", _triton), ("tilelang", _tilelang), ("cuda.core", _cuda)):
        if module in sys.modules:
            stack.enter_context(change(made))
    return made


def _changed(ptx: str, made: list[str]) -> str:
    text, places = with_delays(ptx)
    made.extend(["delay"] * places)
    return text


@contextlib.contextmanager
def _triton(made: list[str]) -> Iterator[None]:
    """By Triton's hook for further stages, which gives such builds keys of their own."""
    from triton import knobs

    def hook(self: Any = None, stages: Any = None, options: Any = None, language: Any = None, more: Any = None) -> Any:
        if stages is None:
            return "kernelci-delays", "kernelci-delays"
        make = stages["ptx"]
        stages["ptx"] = lambda source, metadata: _changed(make(source, metadata), made)
        return None

    before = knobs.runtime.add_stages_inspection_hook
    knobs.runtime.add_stages_inspection_hook = hook
    try:
        yield
    finally:
        knobs.runtime.add_stages_inspection_hook = before


@contextlib.contextmanager
def _tilelang(made: list[str]) -> Iterator[None]:
    """TileLang compiles CUDA C++ by one function, to a cubin as a rule; the delays lie in the PTX between."""
    from tilelang.contrib import nvcc

    compile_cuda = nvcc.compile_cuda

    def compiled(
        code: str, target_format: str = "ptx", arch: Any = None, options: Any = None, *rest: Any, **more: Any
    ) -> Any:
        if target_format not in ("ptx", "cubin"):
            return compile_cuda(code, target_format, arch, options, *rest, **more)
        given = [options] if isinstance(options, str) else list(options or [])
        plain = [flag for flag in given if not str(flag).startswith("--ptxas-options")]
        ptx = _changed(bytes(compile_cuda(code, "ptx", arch, plain, *rest, **more)).decode(), made)
        return bytearray(ptx.encode() if target_format == "ptx" else assembled(ptx))

    with mock.patch.object(nvcc, "compile_cuda", compiled):
        yield


def assembled(ptx: str) -> bytes:
    """A cubin for the target that the PTX names. Raises RuntimeError with what ptxas says."""
    home, target = toolkit.home("bin/ptxas"), re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    if home is None or target is None:
        raise RuntimeError("no ptxas here, or PTX without a target")
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        command = [str(home / "bin" / "ptxas"), f"-arch={target[1]}", str(source), "-o", str(result)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"ptxas: {(done.stderr or done.stdout).strip()[:2000]}")
        return result.read_bytes()


@contextlib.contextmanager
def _cuda(made: list[str]) -> Iterator[None]:
    """A `Program` that compiles C++ to PTX with delays, which the driver assembles when it is loaded."""
    import cuda.core
    from cuda.core import ObjectCode, Program

    class Delayed:
        def __init__(self, code: Any, code_type: str, options: Any = None) -> None:
            self._real = Program(code, code_type, options)
            self._changes = code_type == "c++"

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def compile(self, target_type: str, *args: Any, **kwargs: Any) -> Any:
            if not self._changes or target_type not in ("cubin", "ptx"):
                return self._real.compile(target_type, *args, **kwargs)
            code = self._real.compile(target_type, *args, **kwargs)
            text = _changed(cudacore.ptx_of(self._real).decode(), made)
            return ObjectCode.from_ptx(text.encode(), symbol_mapping=dict(code.symbol_mapping or {}))

    with replaced(cuda.core, Program, Delayed):
        yield


@contextlib.contextmanager
def replaced(module: Any, original: object, other: object) -> Iterator[None]:
    """Under whatever name a module of kernels, or the library itself, holds the original, it holds the other."""
    users = [one for one in list(sys.modules.values()) if "__kernelci__" in getattr(one, "__dict__", ())]
    held: list[tuple[Any, str]] = [
        (one, name) for one in (module, *users) for name, value in list(vars(one).items()) if value is original
    ]
    try:
        for one, name in held:
            setattr(one, name, other)
        yield
    finally:
        for one, name in held:
            setattr(one, name, original)
