"""What a trace build's CUDA source begins with: the buffer's address, the regions' numbers, and kernelci_trace.cuh.

The address stands in the code as a number: so no launch has a further argument and no symbol need be found, and such
a build is good for one process only. Nothing of it may be kept for another.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

HEADER = "kernelci_trace.cuh"
VARIABLE = "KERNELCI_TRACE"  # in the environment of a process that traces, for kernels that ask whether to mark
_GUARD = re.compile(r"^#pragma once\n", re.MULTILINE)


class Tracing(Struct, frozen=True):
    """Where a process finds the buffer, and the names of regions by number."""

    address: int
    regions: tuple[str, ...]


class TraceAt(Struct, frozen=True, forbid_unknown_fields=True):
    """Where in the arena the buffer lies, in bytes, and the names of regions by number."""

    offset: int
    size: int
    regions: tuple[str, ...]


@cache
def header() -> str:
    """The text of kernelci_trace.cuh."""
    return Path(__file__).with_name(HEADER).read_text(encoding="utf-8")


def prelude(tracing: Tracing, source: str = "kernel.cu") -> str:
    """What stands before a source of this name, whose lines keep their numbers."""
    return f'{definitions(tracing)}#line 1 "{_quoted(source)}"\n'


def definitions(tracing: Tracing) -> str:
    """The definitions and the header. For each region there are also KERNELCI_BEGIN_<name>() and KERNELCI_END_<name>(),
    for compilers that can only write a call."""
    lines = [f"#define KERNELCI_TRACE {tracing.address:#x}ull"]
    for number, name in enumerate(tracing.regions):
        lines += [
            f"#define KERNELCI_REGION_{name} {number}u",
            f"#define KERNELCI_BEGIN_{name}() KERNELCI_BEGIN({name})",
            f"#define KERNELCI_END_{name}() KERNELCI_END({name})",
        ]
    return "\n".join([*lines, '#line 1 "kernelci_trace.cuh"', _GUARD.sub("\n", header())])


@contextlib.contextmanager
def announced(tracing: Tracing) -> Iterator[None]:
    """Under it the environment says that this process traces."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = f"{tracing.address:#x}"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
