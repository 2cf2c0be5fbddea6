"""`doctor`: yes or NO, what was found, and the next step; also where only the light core is installed."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelci import backends, doctor
from kernelci.check import Check

ROOT = Path(__file__).resolve().parents[2]
CORE = ("click", "rich", "msgspec", "jinja2", "markupsafe", "packaging", "junit_xml", "six", "pygments", "markdown_it")
CHILD = """
import sys
sys.path[:] = [path for path in sys.path if "site-packages" not in path] + sys.argv[1:3]
from pathlib import Path
from kernelci import doctor
checks = doctor.examine(Path(sys.argv[3]))
print(doctor.table(checks))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of the softmax reference and its Triton kernel."""
    for name in ("references/softmax.py", "kernels/softmax/triton.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELCI_CACHE", str(tmp_path / "cache"))


def _check(root: Path, name: str) -> Check:
    return next(check for check in doctor.examine(root) if check.name == name)


def test_a_sound_project(root: Path) -> None:
    assert Check("project", True, "kernels: 1, references: 1") == _check(root, "project")


def test_each_reference_is_asked_for_its_cases(root: Path) -> None:
    assert Check("reference softmax", True, "30 check and 5 bench cases") == _check(root, "reference softmax")


def test_every_backend_is_there(root: Path) -> None:
    passed = {check.name for check in doctor.examine(root) if check.passed}

    assert {f"backend {name}" for name in backends.names()} <= passed


def test_a_folder_that_is_no_project_is_essential(tmp_path: Path) -> None:
    check = doctor.examine(tmp_path)[0]

    assert ("project", False, True) == (check.name, check.passed, check.essential)
    assert "kernelci init" in check.next_step


def test_a_broken_reference_shows_its_error(root: Path) -> None:
    (root / "references" / "softmax.py").write_text("import nonsense\n")

    check = _check(root, "reference softmax")
    assert (False, "kernelci explain reference") == (check.passed, check.next_step)
    assert "No module named 'nonsense'" in check.found


def test_a_broken_card_names_its_kernel(root: Path) -> None:
    (root / "kernels" / "softmax" / "mine.py").write_text("x = 1\n")

    check = _check(root, "kernel softmax/mine")
    assert (False, "kernelci explain card") == (check.passed, check.next_step)


def test_a_missing_package_names_its_extra(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.MODULES, "triton", ("torch", "not_installed"))

    expected = Check("backend triton", False, "missing: not_installed", "pip install 'kernelci[triton]'")
    assert expected == _check(root, "backend triton")


def test_a_cache_that_can_not_be_made_is_essential(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "file").write_text("")
    monkeypatch.setenv("KERNELCI_CACHE", str(root / "file" / "cache"))

    check = _check(root, "cache")
    assert (False, True, "set cache in [tool.kernelci]") == (check.passed, check.essential, check.next_step)


def test_with_the_light_core_alone_it_says_what_to_install(root: Path, tmp_path: Path) -> None:
    light = tmp_path / "light"
    light.mkdir()
    for name in CORE:
        if spec := importlib.util.find_spec(name):
            place = Path(spec.origin or "")
            place = place.parent if spec.submodule_search_locations else place
            (light / place.name).symlink_to(place)

    done = subprocess.run(
        [sys.executable, "-I", "-c", CHILD, str(ROOT), str(light), str(root)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert ("", 0) == (done.stderr, done.returncode)
    assert "NO   backend triton     missing: torch, triton" in done.stdout
    assert "→ pip install 'kernelci[triton]'" in done.stdout
    assert "Nothing can be compiled or run here yet" in done.stdout


@pytest.mark.parametrize(
    ("passed", "sentence"),
    [
        ((), "Nothing can be compiled or run here yet: see the lines that say NO."),
        (("backend cuda",), "This machine compiles cuda for every target; running them needs a GPU host."),
        (("backend cuda", "GPU"), "This machine compiles cuda for every target, and runs and checks them on its GPU."),
        (
            ("backend cuda", "backend triton"),
            "This machine compiles cuda, triton for every target, and checks Triton kernels in the interpreter; "
            "the rest needs a GPU host.",
        ),
    ],
)
def test_conclusion(passed: tuple[str, ...], sentence: str) -> None:
    assert sentence == doctor.conclusion([Check(name, True, "") for name in passed])


def test_table() -> None:
    checks = [Check("project", True, "12 kernels"), Check("GPU", False, "no /dev/nvidia*", "use a GPU host")]

    expected = """\
yes  project  12 kernels
NO   GPU      no /dev/nvidia*
              → use a GPU host

Nothing can be compiled or run here yet: see the lines that say NO."""
    assert expected == doctor.table(checks)
