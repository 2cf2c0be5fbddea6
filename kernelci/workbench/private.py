"""A candidate's own folder: the kernel's files, and the cache of its DSL (the untrusted side)."""

import io
import os
import tarfile
from pathlib import Path

from kernelci import unpacking
from kernelci.workbench.process import CACHE
from kernelci.workbench.protocol import Source

KERNEL_FOLDER = "kernelci-kernel-"
CACHE_BYTES = 128 * 2**20


def private() -> Path:
    """The folder in which this process may write; in the sandbox nobody else sees it."""
    return Path(os.environ["KERNELCI_PRIVATE"])


def written(source: Source) -> Path:
    """Write the kernel's files into a folder of their own; the path of its Python file."""
    folder = private() / f"{KERNEL_FOLDER}{os.getpid()}" / Path(source.folder).name
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in source.files.items():
        (folder / Path(name).name).write_bytes(content)
    return folder / source.name


def packed() -> bytes:
    """What the DSL left in its cache folder, as a tar archive; empty if there is nothing, or too much."""
    folder, buffer = private() / CACHE, io.BytesIO()
    if not folder.is_dir():
        return b""
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        archive.add(folder, ".", filter=_as_it_travels)
    return buffer.getvalue() if buffer.tell() <= CACHE_BYTES else b""


def _as_it_travels(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without symbolic links, which each process makes for itself, and with times in whole seconds: rounded as floats
    they may come out later than ninja's own notes of them, and ninja then builds anew."""
    info.mtime = int(info.mtime)
    return info if info.isreg() or info.isdir() or info.islnk() else None


def unpack(cache: bytes) -> None:
    """Put a cache where the DSL looks for it."""
    with tarfile.open(fileobj=io.BytesIO(cache), mode="r:gz") as archive:
        unpacking.unpack(archive, private() / CACHE)
