"""The stand-in for GitHub, which several folders' tests talk to."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

GITHUB = Path(__file__).parent / "github"
PARTS = ("standin_actions", "standin_checks", "standin_issues", "standin_runners")


@pytest.fixture(scope="session")
def standin() -> ModuleType:
    """The module github/standin.py with all requests that its parts answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(GITHUB)
        for part in PARTS:
            importlib.import_module(part)  # adds its routes
        return importlib.import_module("standin")
