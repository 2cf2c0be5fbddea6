"""Archives for the way: the project there, and the report folder back."""

import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from kernelci import results
from kernelci.basing import LABEL
from kernelci.config import FILES, Config
from kernelci.errors import ConfigError
from kernelci.hub.limits import MIB, Caps
from kernelci.resources import TEMPLATES

DATA = ("workloads", "blob")  # beside definitions of flashinfer-bench
_DAY = (1980, 1, 1, 0, 0, 0)


def project_files(root: Path, options: Config) -> list[Path]:
    """What a run of the project needs: references, kernels, rungs, templates, data of other formats, configuration."""
    folders = (options.references, options.kernels, options.rungs, TEMPLATES, *DATA)
    found = [path for folder in folders for path in _below(root / folder)]
    found += [root / name for name in (*FILES, LABEL) if (root / name).is_file()]
    top = os.path.abspath(root)
    outside = next((path for path in found if not Path(os.path.abspath(path)).is_relative_to(top)), None)
    if outside is not None:
        raise ConfigError(f"{outside} lies outside of {root}", hint="`run --on` takes what lies below --root")
    return sorted(set(found))


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            yield path


def checked(files: Iterable[Path], root: Path, caps: Caps) -> None:
    """Raises ConfigError for more than the way takes."""
    sizes = {path: path.stat().st_size for path in files}
    if sum(sizes.values()) > caps.total_bytes or len(sizes) > caps.members:
        largest = max(sizes, key=lambda path: sizes[path])
        raise ConfigError(
            f"the project has {len(sizes):,} files of {sum(sizes.values()) // MIB:,} MiB; the largest is "
            f"{largest.relative_to(root)}",
            hint=f"`run --on` takes {caps.members:,} files and {caps.total_bytes // MIB} MiB",
        )


def fitting(files: Iterable[Path], caps: Caps) -> tuple[list[Path], int]:
    """results.json and the smallest files, as many as the way takes; and how many are left out."""
    order = sorted(files, key=lambda path: (path.name != results.FILE_NAME, path.stat().st_size, path))
    kept, total = [], 0
    for path in order[: caps.members]:
        total += path.stat().st_size + 512  # what an archive adds
        if total > min(caps.archive_bytes, caps.total_bytes):
            break
        kept.append(path)
    return kept, len(order) - len(kept)


def report_files(folder: Path) -> list[Path]:
    """Plain files of a report folder, without what lies behind a link; each side tells its own git."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in found if path != folder / results.IGNORED]


def pack(into: IO[bytes], trees: Iterable[tuple[str, Path, Iterable[Path]]]) -> None:
    """Write an archive of files below folders, each under a name of its own (empty: at the top). ssh compresses."""
    with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED) as archive:
        for name, root, files in trees:
            for path in files:
                entry = zipfile.ZipInfo(str(Path(name, path.relative_to(root))), _DAY)
                entry.external_attr = 0o100644 << 16
                with path.open("rb") as source, archive.open(entry, "w", force_zip64=False) as target:
                    shutil.copyfileobj(source, target)


def replace(unpacked: Path, out: Path) -> None:
    """Move a report folder's content to where it belongs, in the place of an earlier one's."""
    out.mkdir(parents=True, exist_ok=True)
    results.clear(out)
    for path in unpacked.iterdir():
        target = out / path.name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        path.replace(target)
