"""A local folder: its text files. Links that lead out of it are not followed."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from kernelci.config import ContextSource
from kernelci.context.reading import MAX_FILE_BYTES
from kernelci.context.sources import Found, SourceFailed, chosen


def look(source: ContextSource, root: Path, folder: Path, offline: bool) -> Found:
    """The folder as it is now. Raises SourceFailed."""
    base = (root / Path(source.where).expanduser()).resolve()
    if not base.is_dir():
        raise SourceFailed(f"no folder {source.where!r}")
    found = list(walk(source, base))
    return Found(
        version="",
        fingerprint=fingerprint(source, base, found),
        files=lambda: read(base, found),
        license=source.license or _license(base),
    )


def fingerprint(source: ContextSource, base: Path, found: list[str]) -> str:
    """Changes with any file's name, size or time, and with the filters."""
    digest = hashlib.sha256(repr((str(base), source.paths, source.exclude)).encode())
    for path in found:
        state = (base / path).stat()
        digest.update(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def walk(source: ContextSource, base: Path) -> Iterator[str]:
    """The paths that the source takes, in order."""
    for place, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(names):
            file = Path(place) / name
            path = file.relative_to(base).as_posix()
            if chosen(source, path) and file.is_file() and file.resolve().is_relative_to(base):
                yield path


def read(base: Path, found: list[str]) -> Iterator[tuple[str, bytes]]:
    """Each path with its bytes, no more than just over the limit."""
    for path in found:
        with (base / path).open("rb") as file:
            yield path, file.read(MAX_FILE_BYTES + 1)


def _license(base: Path) -> str:
    """The first line of a licence file, if there is one."""
    for name in ("LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING"):
        if (base / name).is_file():
            lines = (base / name).read_text(encoding="utf-8", errors="replace").splitlines()
            return f"{name}: {next((line.strip() for line in lines if line.strip()), '')}"[:200]
    return "not stated"
