"""Archives by hypothesis: what is unpacked is what was packed, inside its folder; all else is one kind of error."""

import io
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelci.errors import ReportError
from kernelci.hub import unpack
from kernelci.hub.limits import Caps

CAPS = Caps(archive_bytes=10**6, total_bytes=10**6, members=20)
PART = st.text(alphabet="abcXYZ019_-. ", min_size=1, max_size=8)
WILD = st.text(alphabet="ab./\\:\x1f\u202e\u00e9\u0301 ", min_size=1, max_size=12)
CONTENT = st.binary(max_size=200)


def packed(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def unpacked(data: bytes, caps: Caps = CAPS) -> tuple[dict[str, bytes], set[str]]:
    """What lies in the folder afterwards, and what else was written anywhere near it."""
    with tempfile.TemporaryDirectory() as place:
        archive, folder = Path(place) / "a.zip", Path(place) / "deep" / "in"
        archive.write_bytes(data)
        unpack.everything(archive, folder, caps)
        files = {path for path in Path(place).rglob("*") if path.is_file() and path != archive}
        inside = {str(path.relative_to(folder)): path.read_bytes() for path in files if path.is_relative_to(folder)}
        return inside, {str(path) for path in files if not path.is_relative_to(folder)}


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b/c", "b/d.txt", "x y/z", "é"]), CONTENT, max_size=4))
def test_honest_archives_come_out_as_they_went_in(members: dict[str, bytes]) -> None:
    assert (members, set()) == unpacked(packed(members))


@settings(deadline=None)
@given(st.dictionaries(PART | WILD, CONTENT, max_size=6))
def test_names_never_leave_the_folder(members: dict[str, bytes]) -> None:
    try:
        inside, outside = unpacked(packed(members))
    except ReportError:
        return
    assert (set(), len(members)) == (outside, len(inside) + sum(name.endswith("/") for name in members))


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    good = bytearray(packed({"results.json": b'{"a": 1}' * 20, "b/c": b"x" * 50}))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        _, outside = unpacked(bytes(good))
    except ReportError:
        return
    assert set() == outside


@pytest.mark.parametrize("name", [b"\0esults.json", b"results.jso\0", b"results\0json"])
def test_a_zero_byte_in_a_name_is_refused(name: bytes) -> None:
    with pytest.raises(ReportError, match="no plain relative path"):
        unpacked(packed({"results.json": b"{}"}).replace(b"results.json", name))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_an_archive(data: bytes) -> None:
    try:
        _, outside = unpacked(data)
    except ReportError:
        return
    assert set() == outside


@pytest.mark.parametrize(
    ("caps", "why"),
    [
        (Caps(archive_bytes=50, total_bytes=10**6, members=9), "bytes, and 50"),
        (Caps(archive_bytes=10**6, total_bytes=99, members=9), "unpacks to 100 bytes"),
        (Caps(archive_bytes=10**6, total_bytes=10**6, members=1), "2 members, and 1"),
        (Caps(archive_bytes=10**6, total_bytes=10**6, members=9, ratio=2, free_bytes=10), "expands more than 2"),
    ],
)
def test_each_cap_holds(caps: Caps, why: str) -> None:
    with pytest.raises(ReportError, match=why):
        unpacked(packed({"a": b"x" * 50, "b": b"x" * 50}), caps)


def test_a_file_is_no_folder_of_another() -> None:
    with pytest.raises(ReportError, match="a file and a folder"):
        unpacked(packed({"a": b"", "a/b": b""}))


def test_members_that_overlap_are_refused() -> None:
    data = bytearray(packed({"a": b"x" * 100, "b": b"x" * 100}))
    second = data.rfind(b"PK\x01\x02")
    data[second + 20 : second + 24] = (5000).to_bytes(4, "little")

    with pytest.raises(ReportError, match="overlap"):
        unpacked(bytes(data))
