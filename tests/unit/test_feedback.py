"""Feedback from a report: the first failing rung, its smallest case, and who does what."""

import json

import pytest

from kernelci import feedback, reporters


def test_a_green_report_asks_for_nothing(reports) -> None:
    found = feedback.of(reports.all_green())

    assert ("PASSED", (), [None] * 3) == (found.outcome, found.actions, [each.first_failure for each in found.kernels])


def test_the_smallest_failing_case_speaks(reports) -> None:
    found = feedback.of(reports.one_wrong()).kernels[1].first_failure

    assert ("correctness", "3x127-fp32", "normal:0", 2) == (found.rung, found.case, found.draw, found.failing_rows)


def test_an_action_names_the_file_and_the_command(reports) -> None:
    (action,) = feedback.of(reports.compile_error()).actions

    assert ("author", "kernelci run softmax/triton --rungs compile") == (action.who, action.command)
    assert action.do.startswith("change kernels/softmax/triton.py: does not compile.")


def test_a_hostile_command_is_none(reports) -> None:
    found = feedback.of(reports.broken())

    assert {""} == {action.command for action in found.actions}


def test_what_is_broken_is_a_maintainers(reports) -> None:
    assert "maintainer" in {action.who for action in feedback.of(reports.broken()).actions}


@pytest.mark.parametrize("name", ["all_green", "one_wrong", "compile_error", "all_skipped", "broken", "against_base"])
def test_it_is_a_reporter_too(name: str, reports) -> None:
    rendered = reporters.render("feedback", reports.ALL[name]())

    assert rendered == feedback.encode(feedback.of(reports.ALL[name]()))
    assert "reported" == json.loads(rendered)["state"]
