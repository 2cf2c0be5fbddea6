"""Archives that nobody vouches for: all is checked before the first byte is unpacked, and counted while it is."""

import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from kernelci.errors import ConfigError, ReportError
from kernelci.hub.limits import Caps

_END = b"PK\x05\x06"
_END_BYTES = 22
_ENTRY_BYTES = 1024  # of the directory: 46, a name, an extra field; more is no honest entry
_CHUNK = 2**16
_NAME = re.compile(r"[^/\\:\x00-\x1f\x7f]{1,200}(?:/[^/\\:\x00-\x1f\x7f]{1,200}){0,15}")
_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
# Names that Windows takes for devices, with any extension.
_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")


def member(archive: Path, name: str, caps: Caps) -> bytes:
    """The one member of an archive, by its exact name. Raises ReportError for any other archive."""
    with _opened(archive, caps) as opened:
        entries = _checked(opened, archive, caps)
        if [name] != [entry.filename for entry in entries]:
            raise _refused(f"it should hold {name} and nothing else")
        return b"".join(_content(opened, entries[0]))


def everything(archive: Path, folder: Path, caps: Caps) -> tuple[Path, ...]:
    """Unpack into a folder that does not exist yet; the files' paths. Raises ReportError, with nothing left behind."""
    with _opened(archive, caps) as opened:
        entries = _checked(opened, archive, caps)
        folder.mkdir(parents=True)
        return tuple(_written(opened, entry, folder) for entry in entries)


def _written(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path) -> Path:
    path = folder.joinpath(*PurePosixPath(entry.filename).parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.writelines(_content(opened, entry))
    return path


def _refused(why: str) -> ReportError:
    return ReportError(f"artifact refused: {why}", code="artifact")


def _opened(archive: Path, caps: Caps) -> zipfile.ZipFile:
    """The archive, once its directory is known to be small: zipfile reads all of it into memory."""
    try:
        with archive.open("rb") as file:
            _check_directory(file, caps)
        return zipfile.ZipFile(archive)
    except FileNotFoundError as error:
        raise ConfigError(f"no archive {archive}") from error
    except _BAD_ARCHIVE as error:
        raise _refused(f"no zip archive ({error})") from error


def _check_directory(file: IO[bytes], caps: Caps) -> None:
    size = file.seek(0, os.SEEK_END)
    if size > caps.archive_bytes:
        raise _refused(f"the archive has {size:,} bytes, and {caps.archive_bytes:,} are allowed")
    file.seek(max(0, size - _END_BYTES - 2**16))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise _refused("no zip archive")
    total, length, offset = struct.unpack_from("<10xHLL", tail, at)
    if total == 0xFFFF or 0xFFFFFFFF in (length, offset):
        raise _refused("it is a ZIP64 archive, which honest artifacts never need")
    if total > 2 * caps.members + 100 or length > (2 * caps.members + 100) * _ENTRY_BYTES:
        raise _refused(f"{total:,} members, and {caps.members:,} are allowed")


def _checked(opened: zipfile.ZipFile, archive: Path, caps: Caps) -> list[zipfile.ZipInfo]:
    """The files of an archive, none of which can do harm. Raises ReportError."""
    every = opened.infolist()
    for entry in every:
        _check_entry(entry, caps)
    files = [entry for entry in every if not _is_folder(entry)]
    _check_sizes(files, archive.stat().st_size, caps)
    _check_names([entry.filename.casefold() for entry in every])
    return files


def _check_entry(entry: zipfile.ZipInfo, caps: Caps) -> None:
    name = entry.filename.rstrip("/") if _is_folder(entry) else entry.filename
    if entry.orig_filename != entry.filename or not _plain(name):
        raise _refused(f"a member's name is no plain relative path: {entry.orig_filename[:200]!r}")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if _is_folder(entry) else stat.S_IFREG):
        raise _refused(f"{name!r} is a link or no plain file")
    if entry.flag_bits & 0x1:
        raise _refused(f"{name!r} is encrypted")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _refused(f"{name!r} is compressed in an unusual way")
    if entry.file_size > max(caps.free_bytes, caps.ratio * entry.compress_size):
        raise _refused(f"{name!r} expands more than {caps.ratio} times")


def _is_folder(entry: zipfile.ZipInfo) -> bool:
    """Python's own answer fails where a name is empty, as one is that begins with a zero byte."""
    return entry.filename.endswith("/")


def _plain(name: str) -> bool:
    """A relative path of visible characters, in its composed form, whose parts mean nothing special anywhere."""
    parts = name.split("/")
    return (
        _NAME.fullmatch(name) is not None
        and unicodedata.is_normalized("NFC", name)
        and not any(unicodedata.category(char).startswith(("C", "Z")) and char != " " for char in name)
        and not any(part in (".", "..") or part != part.strip() or part.endswith(".") for part in parts)
        and not any(_DEVICES.fullmatch(part) for part in parts)
    )


def _check_sizes(files: list[zipfile.ZipInfo], archive_bytes: int, caps: Caps) -> None:
    if len(files) > caps.members:
        raise _refused(f"{len(files):,} members, and {caps.members:,} are allowed")
    total = sum(entry.file_size for entry in files)
    if total > caps.total_bytes:
        raise _refused(f"it unpacks to {total:,} bytes, and {caps.total_bytes:,} are allowed")
    if sum(entry.compress_size for entry in files) > archive_bytes:
        raise _refused("its members overlap")


def _check_names(names: list[str]) -> None:
    """No name twice, not even where case makes no difference, and no file that is another's folder."""
    known = {name.rstrip("/") for name in names}
    if len(known) != len(names):
        raise _refused("two members have one name")
    files = {name for name in names if not name.endswith("/")}
    if any(str(parent) in files for name in known for parent in PurePosixPath(name).parents):
        raise _refused("a member is a file and a folder")


def _content(opened: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """A member's bytes: as many as its entry says, with the right checksum. Raises ReportError."""
    left = entry.file_size
    try:
        with opened.open(entry) as file:
            while chunk := file.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    break
                yield chunk
    except _BAD_ARCHIVE as error:
        raise _refused(f"{entry.filename!r} is damaged ({error})") from error
    if left:
        raise _refused(f"{entry.filename!r} is not as long as its entry says")
