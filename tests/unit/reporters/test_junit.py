import xml.etree.ElementTree as ET
from types import ModuleType

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelci.model import Environment, Finding, KernelReport, Report, Row, RungResult
from kernelci.reasons import Outcome
from kernelci.reporters import Context, junit


def parsed(report: Report) -> ET.Element:
    return ET.fromstring(junit.render(report, Context()).encode())


def test_there_is_a_suite_per_kernel_and_a_case_per_row(reports: ModuleType) -> None:
    suites = list(parsed(reports.one_wrong()))

    assert ["softmax/triton", "softmax/tilelang", "softmax/cuda"] == [suite.get("name") for suite in suites]
    assert "7" == suites[1].get("tests")
    assert "2" == suites[1].get("failures")


def test_a_broken_reference_is_an_error(reports: ModuleType) -> None:
    root = parsed(reports.broken())

    assert ("1", "1") == (root.get("errors"), root.get("failures"))


def test_skipped_rungs_are_skipped_cases(reports: ModuleType) -> None:
    assert 15 == len(parsed(reports.all_skipped()).findall(".//skipped"))


def test_a_failure_names_its_reason_and_command(reports: ModuleType) -> None:
    failure = parsed(reports.compile_error()).find(".//failure")

    assert failure is not None
    assert "compile-error" == failure.get("type")
    assert "at kernels/softmax/triton.py:31" in (failure.text or "")
    assert "reproduce: kernelci run softmax/triton --rungs compile" in (failure.text or "")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=[]), max_size=60), st.sampled_from(["wrong", "reference", "no-gpu"]))
def test_any_text_is_well_formed_xml(text: str, reason: str) -> None:
    found = Finding(reason, text, text, 1, text, text)
    outcome = {"wrong": Outcome.FAILED, "reference": Outcome.BROKEN, "no-gpu": Outcome.SKIPPED}[reason]
    rung = RungResult(text, outcome, 1.0, found, (Row(outcome, text, text, text, found),))
    kernel = KernelReport(text, text, text, text, text, (rung, RungResult("x", outcome, 1.0, found)))

    root = parsed(Report(1, text, text, 1.0, Environment(text, text), (kernel,)))

    assert 2 == len(root.findall(".//testcase"))
