"""The comment of README's picture, word for word: what is recorded on an H200, as `publish` would post it."""

import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from kernelci import publication
from kernelci.hub.limits import COMMENT_CHARACTERS

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """docs/images/make_comment.py, which draws it."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("make_comment", IMAGES / "make_comment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_comment_of_the_picture(script: ModuleType, golden: Callable[[str, str], None]) -> None:
    page = script.page()

    golden("comments/h200.md", page)
    assert len(page) <= COMMENT_CHARACTERS
    block = publication.read(page)
    assert block is not None
    assert ("success", 12) == (block.conclusion, block.kernels)


def test_the_picture_is_there_in_full(script: ModuleType) -> None:
    data = (IMAGES / "comment.png").read_bytes()

    assert (b"\x89PNG\r\n\x1a\n", script.SIZE) == (data[:8], struct.unpack(">II", data[16:24]))
