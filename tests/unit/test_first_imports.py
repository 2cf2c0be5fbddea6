"""The table of benchmarks/first_imports.py."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import load

ROOT = Path(__file__).parents[2]
LOG = """
import time: self [us] | cumulative | imported package
import time:      1000 |       1000 |   a.inner
what a kernel printed
import time:      2000 |       3000 | a
import time:       500 |        500 | b
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, with those that it imports."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return load(ROOT / "benchmarks" / "first_imports.py", "first_imports")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_what_was_imported(script: ModuleType) -> None:
    assert script.Imported(3, 0.0035, {"a": 3.0, "b": 0.5}) == script.parsed(LOG)


def test_a_line(script: ModuleType) -> None:
    found = script.Imported(3, 0.0035, {"a": 3.0, "b": 0.5})
    assert "| compiling | 1.23 | 3 | 4 | a 3, b 0 |" == script.line("compiling", 1.234, found)
