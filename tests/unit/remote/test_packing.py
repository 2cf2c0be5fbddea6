"""What travels: a project's own files there, and a report's files back into their place."""

import io
import zipfile
from pathlib import Path

import pytest

from kernelci.config import Config
from kernelci.errors import ConfigError
from kernelci.hub.limits import Caps
from kernelci.remote import packing


def _write(root: Path, *names: str, text: str = "x") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_what_a_run_needs_and_nothing_else(tmp_path: Path) -> None:
    wanted = ("kernelci.toml", "kernels/a/b.cu", "kernels/a/b.py", "references/a.py", "report_templates/t.md.j2")
    _write(tmp_path, *wanted, ".env", "secret.txt", "kernels/a/__pycache__/b.pyc", "kernels/.hidden/x.py", "src/x.py")

    found = [str(path.relative_to(tmp_path)) for path in packing.project_files(tmp_path, Config())]

    assert list(wanted) == found


def test_a_folder_outside_of_the_project(tmp_path: Path) -> None:
    _write(tmp_path, "other/a.py", "project/kernels/a/b.py")

    with pytest.raises(ConfigError, match="lies outside"):
        packing.project_files(tmp_path / "project", Config(references="../other"))


def test_a_project_that_is_too_large_names_its_largest_file(tmp_path: Path) -> None:
    _write(tmp_path, "small", "large", text="xx")
    _write(tmp_path, "large", text="x" * 100)
    files = [tmp_path / "small", tmp_path / "large"]

    with pytest.raises(ConfigError, match="the largest is large"):
        packing.checked(files, tmp_path, Caps(archive_bytes=50, total_bytes=50, members=9))


def test_the_largest_files_stay_behind_and_never_the_report(tmp_path: Path) -> None:
    _write(tmp_path, "results.json", text="x" * 3000)
    _write(tmp_path, "a", "b", text="x" * 10)
    _write(tmp_path, "large", text="x" * 2000)
    files = [tmp_path / name for name in ("large", "b", "a", "results.json")]

    kept, left_out = packing.fitting(files, Caps(archive_bytes=5000, total_bytes=5000, members=9))

    assert (["results.json", "a", "b"], 1) == ([path.name for path in kept], left_out)


def test_links_of_a_report_stay_behind(tmp_path: Path) -> None:
    _write(tmp_path, "out/a")
    (tmp_path / "out" / "link").symlink_to("/etc/passwd")

    assert [tmp_path / "out" / "a"] == packing.report_files(tmp_path / "out")


def test_an_archive_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    _write(tmp_path, "a/b")
    made = []
    for _ in range(2):
        target = io.BytesIO()
        packing.pack(target, [("project", tmp_path, [tmp_path / "a" / "b"])])
        made.append(target.getvalue())
        (tmp_path / "a" / "b").touch()

    assert made[0] == made[1]
    assert ["project/a/b"] == zipfile.ZipFile(io.BytesIO(made[0])).namelist()


def test_a_report_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    _write(tmp_path, "new/results.json", "new/dumps/k.ptx", text="new")
    _write(tmp_path, "out/results.json", "out/dumps/old.ptx", "out/profile/old", "out/mine.txt", text="old")

    packing.replace(tmp_path / "new", tmp_path / "out")

    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {"results.json", "dumps/k.ptx", "mine.txt"} == found
    assert "new" == (tmp_path / "out" / "results.json").read_text()


def test_another_folder_of_that_name_is_left_alone(tmp_path: Path) -> None:
    _write(tmp_path, "new/results.json")
    _write(tmp_path, "out/profile/somebody")

    packing.replace(tmp_path / "new", tmp_path / "out")

    assert (tmp_path / "out" / "profile" / "somebody").exists()
