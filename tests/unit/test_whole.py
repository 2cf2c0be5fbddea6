"""Files that are written whole or not at all."""

from pathlib import Path

import pytest

from kernelci import whole


def test_a_file_takes_the_place_of_another(tmp_path: Path) -> None:
    for text in (b"old", b"new"):
        whole.write(tmp_path / "a", text)
    assert [("a", b"new")] == [(path.name, path.read_bytes()) for path in tmp_path.iterdir()]


def test_what_can_not_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        whole.write(tmp_path / "a", b"new")
    assert ["a"] == [path.name for path in tmp_path.iterdir()]


def test_a_folder_that_is_not_there_is_made_for_a_cache_alone(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        whole.write(tmp_path / "b" / "c", b"new")
    whole.keep(tmp_path / "b" / "c", b"new")
    assert b"new" == (tmp_path / "b" / "c").read_bytes()


def test_a_cache_that_can_not_be_written_is_nobodys_fault(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"a file")
    whole.keep(tmp_path / "b" / "c", b"new")
    assert b"a file" == (tmp_path / "b").read_bytes()
