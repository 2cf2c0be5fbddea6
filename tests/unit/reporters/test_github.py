"""Annotations: the ten that matter, one line each, and no text that can become another command."""

import re
from types import ModuleType

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kernelci.model import Change, Finding, JudgeChange, KernelReport, Report
from kernelci.reasons import Outcome
from kernelci.reporters import render

LINE = re.compile(r"::(error|warning|notice) (?:file=[^,:]+(?:,line=\d+)?,)?title=[^,:]*::[^\r\n]*")


def lines(report: Report) -> list[str]:
    return render("github", report).splitlines()


def test_a_green_report_has_none(reports: ModuleType) -> None:
    assert [] == lines(reports.all_green())


def test_an_error_stands_at_its_line(reports: ModuleType) -> None:
    found = lines(reports.compile_error())
    assert found[0].startswith("::error file=kernels/")
    assert ",line=" in found[0]


def test_at_most_ten_and_the_rest_is_counted(reports: ModuleType) -> None:
    report = reports.one_wrong()
    wrong = next(kernel for kernel in report.kernels if kernel.outcome is Outcome.FAILED)
    many = tuple(msgspec.structs.replace(wrong, name=f"softmax/k{index}") for index in range(15))
    found = lines(msgspec.structs.replace(report, kernels=many))
    assert (10, "::notice title=kernelci::6 more in the job's summary") == (len(found), found[-1])


def test_removed_kernels_come_first_and_the_judge_last(reports: ModuleType) -> None:
    change = Change(
        "a" * 40, "b" * 40, (JudgeChange("references/softmax.py", "reference", "modified"),), ("softmax/old",)
    )
    found = lines(msgspec.structs.replace(reports.one_wrong(), change=change))
    assert "::warning title=kernels removed::softmax/old" == found[0]
    assert found[-1].startswith("::warning file=references/softmax.py,title=reference modified::")


@given(message=st.text(), name=st.text(min_size=1, max_size=50), file=st.text(max_size=50))
def test_no_text_breaks_out(message: str, name: str, file: str) -> None:
    found = _failing(name, Finding("wrong", message, file, 3))
    assert all(LINE.fullmatch(line) for line in lines(found))
    assert 1 == len(lines(found))


def test_a_command_in_a_message_stays_text() -> None:
    found = _failing("a/b", Finding("wrong", "x\n::add-mask::y\r\n::set-output name=a::b", "k.py", 1))
    assert 1 == len(lines(found))
    assert "x%0A%3A%3Aadd-mask" in lines(found)[0] or "x%0A::add-mask::y%0A" in lines(found)[0]


def _failing(name: str, finding: Finding) -> Report:
    from kernelci.model import SCHEMA_VERSION, Environment, RungResult

    rung = RungResult("correctness", Outcome.FAILED, finding=finding)
    kernel = KernelReport(name, "a", "triton", "kernels/a/b.py", "0" * 64, (rung,))
    return Report(SCHEMA_VERSION, "0", "2026-01-01T00:00:00+00:00", 0.0, Environment("m", "3"), (kernel,))


def test_lost_rows_come_before_what_is_wrong(reports: ModuleType) -> None:
    found = lines(reports.against_base())
    assert ["::warning", "::warning", "::error f"] == [line[:9] for line in found]
