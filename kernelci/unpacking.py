"""Archives of others, unpacked where they can do no harm."""

import copy
import os
import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, to: Path) -> None:
    """Extract all as the filter `data` of PEP 706 does, also where Python has none, as Debian 12's 3.11.2.

    Raises tarfile.TarError for a member that would leave the folder, or is neither file, folder nor link; OSError.
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(to, filter="data")
    else:
        archive.extractall(to, [harmless(member, to) for member in archive])


def harmless(member: tarfile.TarInfo, to: Path) -> tarfile.TarInfo:
    """The member as it may be extracted: within the folder, this user's, with no bits that others could use. Raises
    tarfile.TarError."""
    top = os.path.realpath(to)
    places = [member.name]
    if member.issym() or member.islnk():
        beside = os.path.dirname(member.name) if member.issym() else ""
        places.append(os.path.join(beside, member.linkname))
    elif not (member.isreg() or member.isdir()):
        raise tarfile.ReadError(f"{member.name!r} is neither a file nor a folder nor a link")
    for place in places:
        if os.path.commonpath([top, os.path.realpath(os.path.join(top, place))]) != top:
            raise tarfile.ReadError(f"{member.name!r} would leave the folder")
    found = copy.copy(member)
    found.uid, found.gid, found.uname, found.gname = os.getuid(), os.getgid(), "", ""
    found.mode = 0o755 if member.isdir() else member.mode & 0o755 | 0o600
    return found
