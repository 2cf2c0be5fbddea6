"""Which library a GPU kernel's name belongs to (`libraries.toml`), and what such a name says to a reader."""

import functools
import re
import tomllib
from pathlib import Path

from msgspec import Struct, convert

_TABLE = Path(__file__).with_name("libraries.toml")
_CUT = re.compile(r"(_tensorptr|___main__|_object_at_).*$")  # CuTe DSL: the types of the arguments follow
_COUNTED = re.compile(r"(_0d\w*|_\d+)$")  # Triton before 3.0: how arguments were specialised; CuTe DSL: a number


class Library(Struct, frozen=True, forbid_unknown_fields=True):
    """A library, and how its kernels are called. `yours`: a kernel's own source may bring kernels of such names too."""

    name: str
    patterns: tuple[str, ...]
    source: str
    yours: bool = False


@functools.cache
def libraries() -> tuple[Library, ...]:
    """All known libraries, those first whose names nobody else can have."""
    found = [convert(table, Library) for table in tomllib.loads(_TABLE.read_text(encoding="utf-8")).values()]
    return tuple(sorted(found, key=lambda library: library.yours))


@functools.cache
def _compiled(library: Library) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in library.patterns))


def library_of(name: str) -> Library | None:
    """The library that a kernel of this name belongs to, if one is known."""
    return next((library for library in libraries() if _compiled(library).search(name)), None)


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
