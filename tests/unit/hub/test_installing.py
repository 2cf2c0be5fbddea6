"""What the action installs into, without a network: a package that builds itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelci.hub import installing

BACKEND = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = "kernelci-1-py3-none-any.whl", "kernelci-1.dist-info"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("kernelci/__init__.py", "")
        of = ("Metadata-Version: 2.1", "Name: kernelci", "Version: 1", "Provides-Extra: github", "")
        wheel.writestr(f"{info}/METADATA", "\\n".join(of))
        form = ("Wheel-Version: 1.0", "Generator: x", "Root-Is-Purelib: true", "Tag: py3-none-any", "")
        wheel.writestr(f"{info}/WHEEL", "\\n".join(form))
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that installs without asking anybody."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    return folder


def _packages(python: Path) -> set[str]:
    return {path.name.partition("-")[0] for path in python.parents[1].rglob("*.dist-info")}


@pytest.mark.parametrize(("extras", "compiled"), [("github", False), ("all", True)])
def test_only_heavy_packages_are_compiled_and_none_is_left_over(
    extras: str, compiled: bool, source: Path, tmp_path: Path
) -> None:
    python = installing.install(source, tmp_path / "venvs", extras, [])

    assert {"kernelci"} == _packages(python)
    assert compiled == any(python.parents[1].rglob("kernelci/__pycache__"))
    subprocess.run([python, "-I", "-c", "import kernelci"], check=True)


def test_an_old_pip_installs_from_inside(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing.importlib.metadata, "version", lambda name: "22.0.2")

    assert {"kernelci", "pip"} <= _packages(installing.install(source, tmp_path / "venvs", "github", []))


def test_what_is_unchanged_is_used_again(source: Path, tmp_path: Path) -> None:
    first = installing.install(source, tmp_path / "venvs", "github", [])
    (first.parents[1] / "mark").touch()

    assert first == installing.install(source, tmp_path / "venvs", "github", [])
    assert (first.parents[1] / "mark").exists()
    (source / "pyproject.toml").write_text((source / "pyproject.toml").read_text() + "# another\n")
    assert first != installing.install(source, tmp_path / "venvs", "github", [])


def test_the_script_says_so_and_exits_with_4(tmp_path: Path, source: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", "KERNELCI_VENVS": str(tmp_path), "KERNELCI_ACTION_PIP": "'unclosed"}
    done = subprocess.run(
        [sys.executable, "-I", installing.__file__], env=environ, capture_output=True, text=True, check=False
    )
    assert (4, True) == (done.returncode, "could not be installed" in done.stderr)
