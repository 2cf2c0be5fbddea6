"""The table of benchmarks/first_imports.py."""

from collections.abc import Callable
from types import ModuleType

import pytest

LOG = """
import time: self [us] | cumulative | imported package
import time:      1000 |       1000 |   a.inner
what a kernel printed
import time:      2000 |       3000 | a
import time:       500 |        500 | b
"""


@pytest.fixture(scope="module")
def imports(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("first_imports")


def test_what_was_imported(imports: ModuleType) -> None:
    assert imports.Imported(3, 0.0035, {"a": 3.0, "b": 0.5}) == imports.parsed(LOG)


def test_a_line(imports: ModuleType) -> None:
    found = imports.Imported(3, 0.0035, {"a": 3.0, "b": 0.5})
    assert "| compiling | 1.23 | 3 | 4 | a 3, b 0 |" == imports.line("compiling", 1.234, found)
