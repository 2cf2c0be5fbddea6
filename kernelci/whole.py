"""Files that are written whole or not at all, so that whoever reads meanwhile sees the old one or the new one."""

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from kernelci.errors import unwritten


def write(path: Path, data: bytes) -> None:
    """Write a file by way of another beside it. Raises OSError, and leaves nothing half done."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def keep(path: Path, data: bytes) -> None:
    """Write into a cache, whose folders are made: one that can't be written costs time later, and nothing else."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, data)


def lay(root: Path, files: Mapping[Path, str]) -> None:
    """Write new files below `root`, all or none. Raises what `errors.unwritten` gives."""
    laid: list[Path] = []
    for place, text in files.items():
        path = root / place
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            laid.append(path)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            for each in laid:
                each.unlink(missing_ok=True)
            raise unwritten(path, error, "nothing was written; see who may write there") from error
