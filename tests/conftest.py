"""What all tests share: golden files and the reports that they show."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent
Golden = Callable[[str, str], None]
Script = Callable[[str], ModuleType]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes what is rendered now; read the diff before you commit it."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files under tests/golden")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is marked `gpu` where there is none."""
    if any(Path("/dev").glob("nvidia[0-9]*")):
        return
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the golden file of that name, or rewrite the file with --update-golden."""

    def check(name: str, actual: str) -> None:
        path = TESTS / "golden" / name
        if request.config.getoption("--update-golden"):
            path.write_text(actual, encoding="utf-8")
        expected = path.read_text(encoding="utf-8")
        assert expected == actual, f"{path} differs; if that is wanted, run pytest --update-golden and read the diff"

    return check


@pytest.fixture(scope="session")
def reports() -> ModuleType:
    """The module tests/golden/reports.py, which makes the reports that golden files show."""
    return load(TESTS / "golden" / "reports.py", "golden_reports")


@pytest.fixture(scope="session")
def script() -> Script:
    """The scripts of benchmarks/ as modules, each by its name; while one is loaded it finds the others by theirs."""
    folder = TESTS.parent / "benchmarks"

    def loaded(name: str) -> ModuleType:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(folder)
            return load(folder / f"{name}.py", name)

    return loaded


def load(path: Path, name: str) -> ModuleType:
    """A Python file that is no package's, as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
