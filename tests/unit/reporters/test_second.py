"""Rows of the second referee in every form that a report takes: titled so, and green in none."""

import xml.etree.ElementTree as ElementTree
from types import ModuleType

import msgspec
import pytest

from kernelci import feedback, reporters, second
from kernelci.model import Change, Finding, JudgeChange, KernelReport, Report, RungResult, Second
from kernelci.reasons import Outcome

HOSTILE = "<script>alert(1)</script>\x1b[2J ✅ @everyone"


@pytest.fixture
def heard(reports: ModuleType) -> Report:
    """Nothing was judged; the change's own judge says that one kernel passed and another is wrong."""
    passed = RungResult("correctness", Outcome.PASSED)
    wrong = RungResult("correctness", Outcome.FAILED, finding=Finding("wrong", HOSTILE, log=HOSTILE))
    kernels = tuple(
        KernelReport(f"topk/{name}", "topk", "triton", f"kernels/topk/{name}.py", "00", (rung,))
        for name, rung in (("good", passed), ("bad", wrong))
    )
    change = Change("b" * 40, "a" * 40, (JudgeChange("references/topk.py", "reference", "added"),))
    said = Second(kernels, "ada", "bubblewrap", log=HOSTILE)
    return msgspec.structs.replace(reports.report(()), change=change, second=said)


def offered(report: Report) -> Report:
    return msgspec.structs.replace(report, second=None)


def test_junit_skips_what_it_says_passed_and_fails_what_it_says_failed(heard: Report) -> None:
    suites = ElementTree.fromstring(str(reporters.render("junit", heard)))
    found = {suite.get("name"): [child.tag for case in suite.iter("testcase") for child in case] for suite in suites}
    assert {"second referee: topk/good": ["skipped"], "second referee: topk/bad": ["failure"]} == found


@pytest.mark.parametrize("name", ["html", "markdown", "console"])
def test_pages_title_the_rows_and_show_no_sign_of_green(name: str, heard: Report) -> None:
    page = str(reporters.render(name, heard))
    at = page.index("says passed")
    assert ("second referee: topk/good" in page, "second referee: topk/bad" in page) == (True, True)
    assert "PASSED" not in page[at - 300 : at + 20]
    assert ("<script>" in page.replace("```text\n<script>", ""), "\x1b" in page) == (False, False) or name == "console"


@pytest.mark.parametrize("name", ["html", "markdown", "console"])
def test_pages_say_who_can_have_it_heard(name: str, heard: Report) -> None:
    page = " ".join(str(reporters.render(name, offered(heard))).replace("&#39;", "'").split())
    assert f"the label {second.LABEL} does it, for this commit alone" in page
    assert second.LABEL not in str(reporters.render(name, heard))


def test_feedback_keeps_it_apart(heard: Report) -> None:
    found = feedback.of(heard)
    assert found.second is not None
    assert (Outcome.SKIPPED, (), second.CAVEAT) == (found.outcome, found.kernels, found.second.caveat)
    assert ["second referee: topk/good", "second referee: topk/bad"] == [each.name for each in found.second.kernels]
    assert ["maintainer"] == [action.who for action in found.actions]


def test_feedback_says_who_can_have_it_heard(heard: Report) -> None:
    assert second.how() in [action.do for action in feedback.of(offered(heard)).actions]


@pytest.mark.parametrize("name", ["csv", "openmetrics", "github"])
def test_forms_for_programs_leave_it_out(name: str, heard: Report) -> None:
    assert "topk" not in str(reporters.render(name, heard)).replace("references/topk.py", "")
