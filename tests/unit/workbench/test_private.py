"""A cache that travels from the process that built to those that call: what ninja built is not built anew there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelci.workbench import private
from kernelci.workbench.process import CACHE

RULES = """
rule cc
  command = gcc -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process's own folder."""
    monkeypatch.setenv("KERNELCI_PRIVATE", str(tmp_path))
    return tmp_path


def test_nothing_is_packed_where_there_is_none(folder: Path) -> None:
    assert b"" == private.packed()


@pytest.mark.skipif(not (shutil.which("ninja") and shutil.which("gcc")), reason="needs ninja and gcc")
def test_what_was_built_stays_built(folder: Path) -> None:
    cache = folder / CACHE
    cache.mkdir()
    names = [f"part{number}" for number in range(8)]
    builds = "".join(f"build {name}.o: cc {name}.c\n" for name in names)
    (cache / "build.ninja").write_text(RULES + builds, encoding="utf-8")
    for name in names:
        (cache / f"{name}.c").write_text(f"int {name}(void) {{ return 1; }}\n", encoding="utf-8")
    subprocess.run(["ninja"], cwd=cache, check=True, stdout=subprocess.DEVNULL)
    packed = private.packed()
    shutil.rmtree(cache)
    private.unpack(packed)
    again = subprocess.run(["ninja", "-n"], cwd=cache, check=True, capture_output=True, text=True).stdout
    assert "no work to do" in again


def test_links_to_libraries_stay_behind(folder: Path) -> None:
    cache = folder / CACHE
    (cache / "libraries").mkdir(parents=True)
    (cache / "libraries" / "libcudart.so").symlink_to("/elsewhere/libcudart.so.13")
    (cache / "kept").write_text("some", encoding="utf-8")
    packed = private.packed()
    shutil.rmtree(cache)
    private.unpack(packed)
    found = sorted(path.name for path in cache.rglob("*") if path.is_symlink() or path.is_file())
    assert (["kept"], "some") == (found, (cache / "kept").read_text(encoding="utf-8"))
