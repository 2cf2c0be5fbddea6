"""Sources: what the configuration names, and how each kind is looked at. Where one fails, its last shard stays."""

import importlib
import importlib.metadata
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from kernelci.config import Config, ContextSource
from kernelci.context.reading import LeftOut, checked, text_of, wanted
from kernelci.context.shard import Text

# What is indexed where the configuration names nothing: the installed DSLs, the PTX wrappers, and the own kernels.
DEFAULTS = (
    ContextSource(
        name="triton",
        kind="package",
        where="triton",
        dsl="triton",
        paths=("*.py", "*.pyi", "*.md"),
        exclude=("*/amd/*", "*/hip/*", "*amd_helpers.py"),
    ),
    ContextSource(
        name="tilelang",
        kind="package",
        where="tilelang",
        dsl="tilelang",
        paths=("*.py", "*.pyi", "*.md", "*/tl_templates/cuda/*"),
        exclude=(
            "tilelang/3rdparty/*",
            *(f"tilelang/{other}/*" for other in ("ascend", "rocm", "metal", "webgpu", "cpu")),
        ),
    ),
    ContextSource(
        name="cutedsl",
        kind="package",
        where="nvidia-cutlass-dsl-libs-core, nvidia-cutlass-dsl-libs-base",
        dsl="cutedsl",
        exclude=("*/_mlir/dialects/*_gen.py",),
    ),
    ContextSource(name="ptx", kind="package", where="nvidia-cuda-cccl", dsl="ptx", paths=("*/cuda/__ptx/*",)),
    ContextSource(
        name="cuda", kind="package", where="nvidia-cuda-runtime, nvidia-cuda-crt", dsl="cuda", paths=("*/include/*.h*",)
    ),
    ContextSource(name="kernels", kind="kernels"),
)


class SourceFailed(Exception):
    """A source that can't be had now; what was served before stays."""


class Missing(SourceFailed):
    """A package that is not installed."""


class Found(Struct, frozen=True, kw_only=True):
    """A source as it is now. `files` reads it; two of one fingerprint hold the same."""

    version: str
    fingerprint: str
    files: Callable[[], Iterator[tuple[str, bytes]]]
    commit: str = ""
    license: str = ""
    urls: dict[str, str] = {}
    charsets: dict[str, str] = {}
    dsls: dict[str, str] = {}
    limit: int = 0


def configured(config: Config) -> tuple[ContextSource, ...]:
    """The configured sources, or the defaults."""
    return config.context or DEFAULTS


def look(source: ContextSource, root: Path, folder: Path, *, offline: bool = False) -> Found:
    """The source as it is now; git and web sources are fetched, unless offline. Raises SourceFailed."""
    module = importlib.import_module(f"kernelci.context.sources_{source.kind}")
    found: Found = module.look(source, root, folder, offline)
    return found


def chosen(source: ContextSource, path: str) -> bool:
    """Whether the source's filters take this path, and its name is a kind that is read."""
    taken = not source.paths or any(fnmatchcase(path, pattern) for pattern in source.paths)
    return taken and wanted(path) and not any(fnmatchcase(path, pattern) for pattern in source.exclude)


def texts(source: ContextSource, found: Found) -> Iterator[Text | tuple[str, LeftOut]]:
    """The source's documents, and each that is left out with its reason."""
    for name, data in found.files():
        try:
            path = checked(name)
            charset = found.charsets.get(name, "")
            text = text_of(path, data, charset=charset, **({"limit": found.limit} if found.limit else {}))
            yield Text(path, text, found.urls.get(name, ""), found.dsls.get(name, source.dsl))
        except LeftOut as reason:
            yield ascii(name)[1:-1][:200], reason
