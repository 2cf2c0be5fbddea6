"""Installed packages: the text files that their record lists, in the installed version. Nothing is imported."""

import hashlib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath

from kernelci.config import ContextSource
from kernelci.context.reading import MAX_FILE_BYTES
from kernelci.context.sources import Found, Missing, chosen


def look(source: ContextSource, root: Path, folder: Path, offline: bool) -> Found:
    """The packages as they are installed now. Raises Missing."""
    found = [_distribution(name.strip()) for name in source.where.split(",") if name.strip()]
    versions = [distribution.version for distribution in found]
    digest = hashlib.sha256(repr((source.where, versions, source.paths, source.exclude)).encode())
    for distribution in found:
        digest.update((distribution.read_text("RECORD") or "").encode())
    return Found(
        version=", ".join(dict.fromkeys(versions)),
        fingerprint=digest.hexdigest(),
        files=lambda: _files(source, found),
        license=source.license or _license(found[0]),
    )


def _distribution(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError) as error:
        raise Missing(f"package {name!r} is not installed") from error


def _license(distribution: metadata.Distribution) -> str:
    """What the package's metadata says; the classifier where the field holds a whole text."""
    said = distribution.metadata
    fields = (str(value) for name in ("License-Expression", "License") for value in said.get_all(name) or ())
    text = next(fields, "").strip()
    if text and "\n" not in text and len(text) <= 100:
        return text
    kinds = [line for line in said.get_all("Classifier") or () if line.startswith("License ::")]
    if kinds:
        return str(kinds[0]).rpartition(":: ")[2]
    files = said.get_all("License-File") or ()
    return f"see {files[0]}" if files else "not stated"


def _files(source: ContextSource, found: list[metadata.Distribution]) -> Iterator[tuple[str, bytes]]:
    for distribution in found:
        for entry in distribution.files or ():
            path = PurePosixPath(entry).as_posix()
            if not chosen(source, path):
                continue
            data = _bytes(Path(str(distribution.locate_file(entry))))
            if data is not None:
                yield path, data


def _bytes(path: Path) -> bytes | None:
    """The file's bytes, no more than just over the limit; None for one that is listed and not there."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError:
        return None
