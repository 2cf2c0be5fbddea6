"""The comment of README's picture, word for word: what is recorded on an H200, as `publish` would post it."""

import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from kernelci import publication
from kernelci.hub.limits import COMMENT_CHARACTERS
from tests.conftest import load

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"


@pytest.fixture(scope="module")
def picture() -> ModuleType:
    """docs/images/make_comment.py, which draws it."""
    return load(IMAGES / "make_comment.py", "make_comment")


def test_the_comment_of_the_picture(picture: ModuleType, golden: Callable[[str, str], None]) -> None:
    page = picture.page()

    golden("comments/h200.md", page)
    assert len(page) <= COMMENT_CHARACTERS
    block = publication.read(page)
    assert block is not None
    assert ("success", 12) == (block.conclusion, block.kernels)


def test_the_picture_is_there_in_full(picture: ModuleType) -> None:
    data = (IMAGES / "comment.png").read_bytes()

    assert (b"\x89PNG\r\n\x1a\n", picture.SIZE) == (data[:8], struct.unpack(">II", data[16:24]))
