"""No text in any field gets out of its place, and no report gets over GitHub's limits."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kernelci.errors import ConfigError
from kernelci.model import (
    Environment,
    Finding,
    KernelReport,
    LostRow,
    Metric,
    Report,
    Row,
    RungResult,
    Unit,
    Verdict,
)
from kernelci.reasons import Outcome
from kernelci.reporters import Context, markdown

MARKDOWN = MarkdownIt("commonmark").enable("table")
OURS = {"<code>", "</code>", "<sub>", "</sub>", "<details>", "</details>", "<summary>", "</summary>"}
PIECES = "<img src=x>~<!--~-->~</details>~![a](b)~[a](b)~|~`~```~@user~#12~GH-7~\\~*b*~http://a.b~- x~# h~ ~a"
TEXT = st.lists(
    st.sampled_from((*PIECES.split("~"), "~~~", "\n", "\r\n", "\x1b[31m", "\u202e")) | st.text(max_size=3), max_size=8
).map("".join)
HOSTILE = "@<![|`#\\\n~"


def made(text: str, reason: str = "wrong") -> Report:
    """A report with the text in every field that holds text."""
    found = Finding(reason, text, text[:300], 7, text, text)
    short = text[:300]
    metric = Metric(short.replace(":", ""), 1.0, Unit.NONE, short, text)  # what follows a colon is an output
    row = Row(
        Outcome.FAILED,
        short,
        short,
        short,
        found,
        (metric, Metric(f"worst_ratio:{short}"[:300], 2.0, Unit.RATIO, short)),
        (text,),
    )
    times = Row(
        Outcome.PASSED,
        short,
        short,
        short,
        metrics=(Metric("delta", 0.1, Unit.FRACTION, short, text, 0.05, 0.15), Metric("q", 1e-9, Unit.FRACTION, short)),
        notes=(text,),
        verdict=Verdict.SLOWER,
    )
    first = Row(
        Outcome.PASSED,
        short,
        metrics=(
            Metric("time", 4.0, Unit.NANOSECONDS, short, text, 3.0, 5.0),
            Metric(f"speedup_{short}"[:300].replace(":", ""), 2.0, Unit.RATIO, short),
        ),
        notes=(text,),
    )
    skipped = RungResult("dump", Outcome.SKIPPED, finding=Finding("no-gpu", text), notes=(text,))
    benchmark = RungResult("benchmark", Outcome.PASSED, rows=(times, first))
    rungs = (RungResult(short, Outcome.FAILED, 1.0, found, (row,), (metric,), (), (text,)), skipped, benchmark)
    kernel = KernelReport(short, short, short, short, short, rungs, (LostRow(short, "removed", short, text),))
    where = Environment(short, short, short, short, short, short, {short: short})
    return Report(1, short, short, 1.0, where, (kernel,), short, (text,))


def outside_fences(page: str) -> str:
    """What is left of a page without its fenced blocks."""
    kept, fence = [], ""
    for line in page.split("\n"):
        opening = re.match(r"(`{3,})(text|sh)?$", line)
        if opening and (not fence or line == fence):
            fence = "" if fence else opening.group(1)
        elif not fence:
            kept.append(line)
    assert not fence
    return "\n".join(kept)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(TEXT, st.sampled_from(["comment", "summary"]))
def test_no_text_becomes_markup(text: str, page: str) -> None:
    rest = outside_fences(markdown.render(made(text), Context(page=page))).removeprefix(f"{markdown.MARKER}\n")

    assert set(re.findall(r"<[^<>\n]*>?", rest)) <= OURS
    assert [] == re.findall(r"(?i)@\w|(?<!&)#\d|!\[|\]\(|https?://|\bgh-\d", rest)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(TEXT)
def test_every_page_has_the_same_shape_whatever_the_text(text: str) -> None:
    def shape(page: str) -> list[str]:
        return [token.type for token in MARKDOWN.parse(page) if not token.type.startswith("html")]

    plain, rendered = (markdown.render(made(f"x{each}x"), Context()) for each in ("y", text))
    assert shape(plain) == shape(rendered)


@pytest.mark.parametrize(("rows", "kernels"), [(0, 0), (2000, 1), (40, 50), (1, 2000)])
@pytest.mark.parametrize("page", ["comment", "summary"])
def test_pages_stay_within_their_limits(page: str, rows: int, kernels: int, reports) -> None:
    rendered = markdown.render(reports.large(rows, kernels), Context(page=page))

    assert len(rendered.encode()) <= markdown.LIMITS[page]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 3000), st.integers(1, 60))
def test_the_comment_stays_within_its_limit_for_any_number_of_rows(reports, rows: int, kernels: int) -> None:
    rendered = markdown.render(reports.large(rows // kernels, kernels), Context())

    assert len(rendered.encode()) <= markdown.LIMITS["comment"]


@pytest.mark.parametrize("text", ["@" * 20_000, "<\n" * 10_000, HOSTILE * 2000, "𝕏" * 20_000])
def test_the_worst_text_fits(text: str) -> None:
    report = made(text)
    kernels = tuple(report.kernels[0] for _ in range(300))
    many = Report(1, "0", "0", 1.0, report.environment, kernels, "", (text,) * 50)

    assert len(markdown.render(many, Context()).encode()) <= markdown.LIMITS["comment"]


def test_what_is_left_out_is_said(reports) -> None:
    page = markdown.render(reports.large(40, 50), Context())

    assert re.search(r"Left out for length: .*lesser failures.*in results\.json", page)


def test_folded_tables_go_first(reports) -> None:
    page = markdown.render(reports.large(30, 20), Context())

    assert "Left out for length: folded tables. All" in page
    assert "The kernel's own output" in page


def test_the_summary_holds_more_than_the_comment(reports) -> None:
    report = reports.large(30, 20)

    comment, summary = (markdown.render(report, Context(page=page)) for page in ("comment", "summary"))
    assert len(summary) > len(comment)
    assert "<summary>compile" in summary


def test_a_project_overrides_one_partial(tmp_path: Path, reports) -> None:
    (tmp_path / "report_templates").mkdir()
    (tmp_path / "report_templates" / "_verdict.md.j2").write_text("ours: {{ verdict.outcome }}, {{ '<b>' }}\n")

    page = markdown.render(reports.all_green(), Context(root=tmp_path))

    assert "ours: PASSED, &#60;b&#62;\n" in page
    assert "| kernel |" in page


@pytest.mark.parametrize("template", ["{% if %}", "{{ nothing.here }}", "{{ report.__class__.__mro__ }}"])
def test_a_wrong_template_is_a_clear_error(template: str, tmp_path: Path, reports) -> None:
    (tmp_path / "report_templates").mkdir()
    (tmp_path / "report_templates" / "_verdict.md.j2").write_text(template)

    with pytest.raises(ConfigError, match="report template"):
        markdown.render(reports.all_green(), Context(root=tmp_path))
