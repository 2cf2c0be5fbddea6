"""Which library a GPU kernel's name belongs to (`libraries.toml`), and what such a name says to a reader."""

import contextlib
import functools
import mmap
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, convert

_TABLE = Path(__file__).with_name("libraries.toml")
_CUT = re.compile(r"(_tensorptr|_Copy_Atom|_Tiled_?(MMA|Copy)|___main__|_object_at_).*$")  # types of CuTe arguments
_COUNTED = re.compile(r"(_0d\w*|_\d+)$")  # Triton before 3.0: how arguments were specialised; CuTe DSL: a number


class Library(Struct, frozen=True, forbid_unknown_fields=True):
    """A library, and how its kernels are called. `yours`: a kernel's own source may bring kernels of such names too.

    `files`: these, in a folder of sys.path, hold the mangled names of all others of its kernels.
    """

    name: str
    patterns: tuple[str, ...]
    source: str
    yours: bool = False
    files: tuple[str, ...] = ()


@functools.cache
def libraries() -> tuple[Library, ...]:
    """All known libraries, those first whose names nobody else can have."""
    found = [convert(table, Library) for table in tomllib.loads(_TABLE.read_text(encoding="utf-8")).values()]
    return tuple(sorted(found, key=lambda library: library.yours))


@functools.cache
def _compiled(library: Library) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in library.patterns))


@functools.cache
def library_of(name: str) -> Library | None:
    """The library that a kernel of this name belongs to, if one is known: by its pattern, or by the library's files."""
    by_pattern = (library for library in libraries() if _compiled(library).search(name))
    return next(by_pattern, None) or (_shipping(name) if name.startswith("_Z") else None)


def _shipping(name: str) -> Library | None:
    """The library one of whose files holds a mangled name, as every file does that registers a kernel with CUDA."""
    return next((library for library in libraries() if any(_holds(path, name) for path in _installed(library))), None)


def _installed(library: Library) -> Iterator[Path]:
    for folder in sys.path:
        for file in library.files:
            yield from sorted(Path(folder).glob(file))


def _holds(path: Path, name: str) -> bool:
    """Whether a file has this name as a string of its own; half a gigabyte takes a tenth of a second."""
    with (
        contextlib.suppress(OSError, ValueError),
        path.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text,
    ):
        return text.find(b"\0" + name.encode() + b"\0") >= 0
    return False


def readable(name: str) -> str:
    """A C++ symbol's qualified name without its arguments ("at::native::reduce_kernel"); others as they are."""
    match = re.match(r"_ZN?(?=\d)", name)
    if match is None:
        return name
    parts, at = [], match.end()
    while number := re.compile(r"\d{1,3}").match(name, at):
        end = number.end() + int(number.group())
        parts.append(name[number.end() : end])
        at = end
        if match.group() == "_Z":
            break
    return "::".join("(anonymous)" if part.startswith("_GLOBAL__N_") else part for part in parts) or name


def stem(name: str) -> str:
    """A name without what a compiler appended for the types of one call: so two specialisations are known as one."""
    return _COUNTED.sub("", _CUT.sub("", readable(name)))
