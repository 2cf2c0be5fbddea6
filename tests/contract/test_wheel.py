"""The wheel is complete: installed elsewhere, without the repository and its folders in reach, it does its work."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = (".*", "kernelci-report", "__pycache__", "build", "dist")
Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")


def _done(command: list[str | Path], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return subprocess.run(
        command, cwd=cwd, env=kept | environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the repository, by hatchling itself, so that nothing is downloaded."""
    copy = tmp_path_factory.mktemp("source") / "kernelci"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*SKIPPED))
    out = tmp_path_factory.mktemp("wheel")
    built = _done([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, copy], copy)
    assert 0 == built.returncode, built.stdout + built.stderr
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that holds the wheel; the packages that it needs come from this environment."""
    venv = tmp_path_factory.mktemp("elsewhere") / "venv"
    assert 0 == _done([sys.executable, "-m", "venv", "--without-pip", venv], venv.parent).returncode
    (site,) = venv.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return venv / "bin" / "python"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with our references, one kernel, and a template of its own."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "references", root / "references", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "kernels" / "softmax").mkdir(parents=True)
    shutil.copy(ROOT / "kernels" / "softmax" / "triton.py", root / "kernels" / "softmax")
    return root


@pytest.fixture(scope="module")
def run(python: Path, project: Path) -> Run:
    """Run the installed command in the project."""
    cache = str(project / "cache")
    return lambda *arguments: _done([python, "-m", "kernelci", *arguments], project, KERNELCI_CACHE=cache)


@pytest.mark.parametrize(
    "name",
    [
        "kernelci/py.typed",
        "kernelci/gpus.toml",
        "kernelci/data/report_templates/comment.md.j2",
        "kernelci/data/report_templates/summary.md.j2",
        "kernelci/data/runner/setup.sh",
        "kernelci/data/runner/kernelci-runner.service.j2",
        "kernelci/data/runner/kernelci-broker.service.j2",
        "kernelci/data/starters/triton.py.j2",
        "kernelci/data/starters/tilelang.py.j2",
        "kernelci/data/starters/cutedsl.py.j2",
        "kernelci/data/starters/cuda.py.j2",
        "kernelci/data/starters/cuda.cu.j2",
    ],
)
def test_wheel_holds(wheel: Path, name: str) -> None:
    assert name in zipfile.ZipFile(wheel).namelist()


def test_wheel_holds_its_license(wheel: Path) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())


def test_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "kernelci").rglob("*.*") if "__pycache__" not in path.parts}

    assert set() == {name for name in ours if not Path(ROOT, name).is_dir()} - set(zipfile.ZipFile(wheel).namelist())


def test_the_installed_package_is_the_one_that_runs(python: Path, project: Path) -> None:
    where = _done([python, "-c", "import kernelci; print(kernelci.__file__)"], project).stdout

    assert Path(where.strip()).is_relative_to(python.parent.parent)


def test_list(run: Run) -> None:
    listed = run("list", "--json")

    assert (0, ["softmax/triton"]) == (listed.returncode, [row["name"] for row in json.loads(listed.stdout)])


@pytest.fixture(scope="module")
def compiled(run: Run) -> subprocess.CompletedProcess[str]:
    """`compile`, whose report lies in out/."""
    return run("compile", "softmax/triton", "--target", "sm_90a", "--out", "out")


def test_compile(compiled: subprocess.CompletedProcess[str], project: Path) -> None:
    assert 0 == compiled.returncode, compiled.stdout + compiled.stderr
    assert {".cubin", ".ptx", ".sass"} <= {path.suffix for path in (project / "out" / "dumps").rglob("*.*")}


@pytest.mark.parametrize("format_", ["console", "markdown", "junit", "json"])
def test_report_in_every_format(compiled: subprocess.CompletedProcess[str], run: Run, format_: str) -> None:
    shown = run("report", "out", "--format", format_)

    assert (0, "") == (shown.returncode, shown.stderr)
    assert "softmax/triton" in shown.stdout


def test_new_then_compile(run: Run) -> None:
    written = run("new", "matmul/mine", "--backend", "triton")
    compiled = run("compile", "matmul/mine", "--target", "sm_80", "--out", "new")

    assert (0, 0) == (written.returncode, compiled.returncode), written.stderr + compiled.stdout + compiled.stderr


def test_a_projects_own_template_overrides_ours(
    compiled: subprocess.CompletedProcess[str], run: Run, project: Path
) -> None:
    own = project / "report_templates"
    own.mkdir()
    (own / "_verdict.md.j2").write_text("Our own words.\n")

    shown = run("report", "out", "--format", "markdown")

    assert "Our own words." in shown.stdout
    assert "softmax/triton" in shown.stdout  # all other parts are still kernelci's
