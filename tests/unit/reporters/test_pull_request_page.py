"""The comment on a pull request: what strangers choose (branches, paths, names) is harmless, and any report fits."""

import re
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelci import publication
from kernelci.hub.limits import COMMENT_CHARACTERS
from kernelci.publication import Link, Publication
from kernelci.reporters import Context, markdown

PIECES = (
    "<img src=x>",
    "<!--",
    "-->",
    "</details>",
    "![a](b)",
    "[a](b)",
    "|",
    "`",
    "```",
    "@user",
    "fixes #12",
    "GH-7",
)
MORE = ("\\", "*b*", "https://a.b", "\n", "\x1b[31m", "\u202e", "a" * 40, "$x$", ":tada:")
TEXT = st.lists(st.sampled_from((*PIECES, *MORE)) | st.text(max_size=4), max_size=6).map("".join)
URL = "https://github.com/octo-org/kernels/actions/runs/4711"
OURS = {"<code>", "</code>", "<sub>", "</sub>", "<details>", "</details>", "<summary>", "</summary>"}


def where(text: str, url: str = URL, count: int = 1) -> Publication:
    """A publication with the text wherever somebody else chose it."""
    many = (text,) * count
    return Publication(
        pull=7, head_sha="a" * 40, base_sha="b" * 40, head=text, is_fork=True, run=4711, attempt=1, run_url=url,
        conclusion="failure", rank=3, title=text, who="The author: look.", judge=many, added=many, removed=many,
        links=(Link(text, url, 17),) * count,
    )  # fmt: skip


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=150)
@given(TEXT)
def test_no_text_becomes_markup(reports: ModuleType, text: str) -> None:
    page = markdown.render(reports.report(()), Context(publication=where(text)))
    visible = "\n".join(page.split("\n")[1:-2]).replace(f"]({URL})", "")

    assert set(re.findall(r"<[^<>\n]*>?", visible)) <= OURS
    assert [] == re.findall(r"(?i)@\w|(?<!&)#\d|!\[|\]\(|https?://|\bgh-\d|[0-9a-f]{40}|\x1b|\u202e", visible)


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=60)
@given(TEXT, st.integers(0, 3000))
def test_any_page_fits_and_ends_in_its_data(reports: ModuleType, text: str, count: int) -> None:
    page = markdown.render(
        reports.report((reports.green("softmax/triton"),)), Context(publication=where(text, count=count))
    )

    block = publication.read(page)
    assert len(page) <= COMMENT_CHARACTERS
    assert block is not None
    assert ("a" * 40, 4711, "failure") == (block.sha, block.run, block.conclusion)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://x.y/)(", "https://x.y/a b", "http://x.y/?q=<", "", "//x.y"]
)
def test_an_odd_address_is_no_link(url: str) -> None:
    assert "text" == markdown.link("text", url)


def test_the_same_page_has_the_same_hash(reports: ModuleType) -> None:
    one, same = (markdown.render(reports.one_wrong(), Context(publication=where("x"))) for _ in range(2))
    other = markdown.render(reports.one_wrong(), Context(publication=where("y")))

    assert one == same
    assert publication.read(one).hash != publication.read(other).hash
