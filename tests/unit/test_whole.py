"""Files that are written whole or not at all."""

from pathlib import Path

import pytest

from kernelci import whole
from kernelci.errors import ConfigError, RunnerBroken


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


def test_new_files_are_laid_all_or_none(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"a file")
    with pytest.raises(ConfigError, match="a file is in the way"):
        whole.lay(tmp_path, {Path("a"): "one", Path("b/c"): "two"})
    assert ["b"] == [path.name for path in tmp_path.iterdir()]
    whole.lay(tmp_path, {Path("a"): "one", Path("c/d"): "two"})
    assert ("one", "two") == ((tmp_path / "a").read_text(), (tmp_path / "c" / "d").read_text())


def test_a_full_disk_is_the_machines_fault(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(RunnerBroken, match="No space left"):
        whole.lay(tmp_path, {Path("a"): "one", Path("full"): "two"})
    assert not (tmp_path / "a").exists()
