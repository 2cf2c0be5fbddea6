"""The block of data in a comment: whatever is in it, it stays one comment on one line, and is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci import publication
from kernelci.publication import Block, Stopped

TEXT = st.text(max_size=60) | st.sampled_from(
    ["-->", "--!>", "<!--", "@org/team", "fixes #1", "https://x.y", "\u2028", "]]>"]
)


def block(text: str = "", stopped: int = 1) -> Block:
    every = tuple(Stopped(text, "FAILED", text, text, text, text) for _ in range(stopped))
    return Block("current", 7, "a" * 40, 1, 1, "failure", 3, "FAILED", "0" * 32, 1, every)


@given(TEXT)
def test_it_is_read_back(text: str) -> None:
    page = f"{publication.written(block(text))}\n"

    assert block(text) == publication.read(page)


@given(TEXT)
def test_nothing_in_it_gets_out(text: str) -> None:
    line = publication.written(block(text))
    inner = line.removeprefix("<!-- kernelci:data v1 ").removesuffix(" -->")

    assert line.isascii()
    assert not set(inner) & set("<>&@#\n\r")
    assert "://" not in inner


def test_kernels_are_left_out_until_it_is_short() -> None:
    line = publication.written(block("x" * 250, 100))

    assert 1_000 < len(line) <= publication.MAX_BYTES + 40


def test_only_the_last_line_counts() -> None:
    line = publication.written(block())

    assert publication.read(f"{line}\nafter") is None


@pytest.mark.parametrize("inner", ["", "v1", "v1 {}", "v2 {}", "v1 [1]", 'v1 {"state":"current"}', "v1 " + "[" * 9000])
def test_what_is_no_block(inner: str) -> None:
    assert publication.read(f"<!-- kernelci:data {inner} -->") is None
