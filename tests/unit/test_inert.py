"""Hostile text in, harmless text out. A CommonMark parser says what a reader of Markdown would get."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kernelci import inert

PIECES = (
    "<img src=x>|<!--|-->|![a](b)|[a](b)|`|```|~~~|@user|#12|GH-7|\\|&lt;|*b*|_i_|http://a.b|www.a.b|- x|1. x|# h| |a"
)
NASTY = st.lists(
    st.sampled_from((*PIECES.split("|"), "|", "\n", "\r", "\u2028", "\x1b[31m", "\u202e")) | st.text(max_size=5)
).map("".join)
MARKDOWN = MarkdownIt("commonmark").enable("table")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x9b31mred", "red"),
        ("\x1bcreset", "reset"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("a\u200bb\ufeffc\x00d\ud800e", "abcde"),
        ("ä µ ✓ 日本", "ä µ ✓ 日本"),
    ],
)
def test_clean_leaves_printable_text(text: str, expected: str) -> None:
    assert expected == inert.clean(text)


@given(NASTY)
def test_clean_leaves_no_invisible_character(text: str) -> None:
    unseen = {
        char for char in inert.clean(text) if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    }

    assert unseen <= {"\n"}


@given(NASTY)
def test_clean_is_done_once(text: str) -> None:
    assert inert.clean(text) == inert.clean(inert.clean(text))


@given(NASTY)
def test_prose_is_a_paragraph_of_plain_text(text: str) -> None:
    tokens = MARKDOWN.parse(inert.prose(text))

    kinds = [token.type for token in tokens]
    assert kinds in ([], ["paragraph_open", "inline", "paragraph_close"])
    children = {child.type for token in tokens for child in token.children or ()}
    assert children <= {"text", "text_special"}


@given(NASTY)
def test_prose_shows_what_it_was_given(text: str) -> None:
    shown = "".join(child.content for token in MARKDOWN.parse(inert.prose(text)) for child in token.children or ())

    assert inert.line(text) == shown.replace("\u200b", "")


@given(NASTY)
def test_code_stays_in_its_table_cell(text: str) -> None:
    tokens = MARKDOWN.parse(f"| a | b |\n| - | - |\n| {inert.code(text)} | x |\n")

    cells = [tokens[at + 1] for at, token in enumerate(tokens) if token.type == "td_open"]
    assert 2 == len(cells)
    assert "x" == cells[1].content
    html = [child.content for child in cells[0].children or () if child.type == "html_inline"]
    assert html in ([], ["<code>", "</code>"])


@example("a\n```\n# out")
@example("a\n```````\n<b>out</b>")
@example("a\n~~~\n# out")
@given(NASTY)
def test_nothing_leaves_a_fence(text: str) -> None:
    tokens = MARKDOWN.parse(f"{inert.fence(text)}\n\nafter\n")

    assert ["fence", "paragraph_open", "inline", "paragraph_close"] == [token.type for token in tokens]


def test_no_marker_is_left_in_a_fence() -> None:
    assert "<!-- kernelci" not in inert.fence("<!-- kernelci:report -->")


def test_head_counts_what_it_leaves_out() -> None:
    assert "a\nb\n… (2 more lines in results.json)" == inert.head("a\nb\nc\nd\n", 2)


def test_tail_counts_what_it_leaves_out() -> None:
    assert "… (2 earlier lines in results.json)\nc\nd" == inert.tail("a\nb\nc\nd\n", 2)


def test_a_long_line_is_clipped_with_its_rest_counted() -> None:
    assert "aaaa… (+996 characters)" == inert.line("a" * 1000, 4)


def test_a_long_list_is_counted() -> None:
    assert "<code>a</code>, <code>b</code> and 1 more" == inert.codes(["a", "b", "c"], 2)
