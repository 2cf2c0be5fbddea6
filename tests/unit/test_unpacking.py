"""Archives that would leave their folder, with Python's own filter and without."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from kernelci.unpacking import harmless, unpack

OWN = hasattr(tarfile, "data_filter")


@pytest.fixture(params=[pytest.param(True, marks=pytest.mark.skipif(not OWN, reason="this Python has none")), False])
def _filter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


def _archive(*members: tarfile.TarInfo) -> tarfile.TarFile:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    buffer.seek(0)
    return tarfile.open(fileobj=buffer)


def _member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644, size: int = 0
) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode, made.size, made.mtime = kind, link, mode, size, 1_000_000_000
    return made


BAD = [
    _member("../out"),
    _member("a/../../out"),
    _member("link", tarfile.SYMTYPE, "../out"),
    _member("a/link", tarfile.SYMTYPE, "/etc/passwd"),
    _member("link", tarfile.LNKTYPE, "../out"),
    _member("pipe", tarfile.FIFOTYPE),
    _member("device", tarfile.CHRTYPE),
]


@pytest.mark.usefixtures("_filter")
@pytest.mark.parametrize("member", BAD, ids=lambda member: member.name + member.linkname)
def test_nothing_leaves_the_folder(tmp_path: Path, member: tarfile.TarInfo) -> None:
    with _archive(member) as archive, pytest.raises(tarfile.TarError):
        unpack(archive, tmp_path / "in")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("_filter")
def test_files_folders_and_links_within_it(tmp_path: Path) -> None:
    members = (_member("a", tarfile.DIRTYPE, mode=0o700), _member("a/run", mode=0o6755, size=1))
    with _archive(*members, _member("link", tarfile.SYMTYPE, "a/run")) as archive:
        unpack(archive, tmp_path)
    status = (tmp_path / "link").stat()
    assert ("x", 0o755, 1_000_000_000) == ((tmp_path / "link").read_text(), status.st_mode & 0o7777, status.st_mtime)


def test_what_is_extracted_is_this_users(tmp_path: Path) -> None:
    found = harmless(_member("a", mode=0o777), tmp_path)
    assert (os.getuid(), os.getgid(), 0o755) == (found.uid, found.gid, found.mode)
