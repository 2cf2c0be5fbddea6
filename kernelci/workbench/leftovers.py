"""What torch.compile leaves in its cache folder, as an archive: compiled code, and choices between configurations.

Names as in torch/_inductor: `codecache.py` (graphs, Python, C++), `runtime/autotune_cache.py` (choices), and Triton's
cache of machine code.
"""

import io
import re
import tarfile
import zlib
from collections.abc import Collection

CHOICE = ".best_config"
_UNREADABLE = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error)
_CODE = re.compile(r"\.(py|so|cubin)$|/fxgraph/|/aotautograd/")


def code(archive: bytes) -> set[str]:
    """The files that hold compiled code; none of an empty archive."""
    return {name for name in _files(archive) if _CODE.search(name)}


def choices(archive: bytes) -> set[str]:
    """The files that say which of several configurations was the fastest."""
    return {name for name in _files(archive) if name.endswith(CHOICE)}


def without_choices(archive: bytes, but: Collection[str] = ()) -> bytes:
    """The same archive without choices but these: whoever made the others was not alone on the GPU.

    Empty where it can't be read to its end.
    """
    dropped = choices(archive) - set(but)
    if not dropped:
        return archive
    try:
        return _rewritten(archive, dropped)
    except _UNREADABLE:
        return b""


def _rewritten(archive: bytes, dropped: Collection[str]) -> bytes:
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as whole,
        tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as left,
    ):
        for member in whole:
            if member.name not in dropped:
                left.addfile(member, whole.extractfile(member) if member.isreg() else None)
    return buffer.getvalue()


def _files(archive: bytes) -> list[str]:
    """Those of an archive that can be read; none of another."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
            return [member.name for member in opened if member.isreg() or member.islnk()]
    except _UNREADABLE:
        return []
