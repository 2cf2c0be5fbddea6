"""Makes the helper module of this folder importable, and the stand-in for GitHub that the tests of `publish` use."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def standin() -> ModuleType:
    """The module standin.py."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "github"))
    try:
        import standin
    finally:
        sys.path.pop(0)
    return standin
