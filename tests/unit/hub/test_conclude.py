"""The conclusion of a check: never green where something of the change is in doubt."""

import msgspec
import pytest

from kernelci.config import Config
from kernelci.hub.conclude import Touched, conclude, touched
from kernelci.hub.pull import File, Files
from kernelci.model import Change, Metric, Report, Row, RungResult, Unit
from kernelci.reasons import Outcome

BOTH = ("kernels/softmax/cuda.py", "kernels/softmax/triton.py")


def change(*kernels: str, judge: tuple[str, ...] = (), complete: bool = True) -> Touched:
    return Touched(judge, kernels, (), (), complete)


def word(report: Report, what: Touched = change(), attempt: int = 1) -> str:  # noqa: B008
    return conclude(report, what, attempt).word


def with_delta(reports, low: float, high: float) -> Report:
    """A green kernel whose time against the base is known within an interval."""
    metrics = (
        Metric("time_base", 10_000.0, Unit.NANOSECONDS, "base"),
        Metric("time_head", 10_100.0, Unit.NANOSECONDS, "head"),
        Metric("delta", (low + high) / 2, Unit.FRACTION, "change", "", low, high),
        Metric("floor", 0.005, Unit.FRACTION, "floor"),
    )
    green = reports.green("softmax/triton")
    timed = RungResult("benchmark", Outcome.PASSED, rows=(Row(Outcome.PASSED, "64x1024-fp16", metrics=metrics),))
    return reports.report((msgspec.structs.replace(green, rungs=(*green.rungs, timed)),))


def test_all_green(reports) -> None:
    assert "success" == word(reports.all_green(), change(*BOTH))


def test_one_wrong(reports) -> None:
    assert "failure" == word(reports.one_wrong(), change(*BOTH))


@pytest.mark.parametrize("make", ["all_green", "one_wrong", "broken", "all_skipped"])
def test_a_changed_judge_comes_first(make: str, reports) -> None:
    assert "action_required" == word(reports.ALL[make](), change(judge=("references/softmax.py",)))


def test_more_files_than_github_lists_may_hide_a_judge(reports) -> None:
    assert "action_required" == word(reports.all_green(), change(complete=False))


def test_nothing_executed_is_never_green(reports) -> None:
    assert "action_required" == word(reports.all_skipped())


def test_a_change_without_kernels_is_skipped(reports) -> None:
    assert "skipped" == word(reports.report(()))


def test_a_changed_kernel_must_be_in_the_report(reports) -> None:
    assert "action_required" == word(reports.report(()), change(*BOTH))


def test_a_changed_cu_file_is_judged_with_its_python_file(reports) -> None:
    assert "success" == word(reports.all_green(), change("kernels/softmax/cuda.cu"))


def test_compiled_alone_is_not_enough_for_a_changed_kernel(reports) -> None:
    report = reports.report(
        (reports.kernel("softmax/cuda", reports.compiled("sm_90a"), reports.skip("correctness", "no-gpu")),)
    )

    assert ("action_required", "action_required") == (word(report, change(*BOTH[:1])), word(report, change()))


def test_an_incomplete_run_is_never_green(reports) -> None:
    found = Change("b" * 40, "a" * 40, incomplete="the GPU run has to be allowed")

    assert "action_required" == word(msgspec.structs.replace(reports.all_green(), change=found))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-0.02, 0.02, "neutral"), (-0.001, 0.002, "success"), (0.01, 0.02, "success"), (-0.09, -0.02, "success")],
)
def test_an_unknown_time_is_neutral(low: float, high: float, expected: str, reports) -> None:
    assert expected == word(with_delta(reports, low, high))


@pytest.mark.parametrize("reason", ["candidate-start", "reference"])
def test_broken_before_a_kernel_started_is_neutral(reason: str, reports) -> None:
    stop = reports.stop("compile", reports.Finding(reason, "x"))

    assert "neutral" == word(reports.report((reports.kernel("softmax/triton", stop),)), change(*BOTH))


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_broken_while_kernels_ran_is_not_neutral(attempt: int, reports) -> None:
    rungs = (reports.compiled("sm_90a"), reports.stop("run", reports.Finding("gpu-sick", "x")))

    found = conclude(reports.report((reports.kernel("softmax/triton", *rungs),)), change(*BOTH), attempt)

    assert ("action_required", attempt == 1) == (found.word, found.retry)


def test_files_are_sorted_by_what_they_do() -> None:
    files = (
        File("kernels/softmax/triton.py", "modified"),
        File("kernels/softmax/new.cu", "added"),
        File("kernels/softmax/old.py", "removed"),
        File("kernels/softmax/b.py", "renamed", "kernels/softmax/a.py"),
        File("kernels/README.md", "added"),
        File("references/softmax.py", "modified"),
    )

    found = touched(Files(files, True), Config())

    assert (
        ("references/softmax.py",),
        ("kernels/softmax/b.py", "kernels/softmax/new.cu", "kernels/softmax/triton.py"),
        ("kernels/softmax/new.cu",),
        ("kernels/softmax/a.py", "kernels/softmax/old.py"),
    ) == (found.judge, found.kernels, found.added, found.removed)


def test_a_project_in_a_folder() -> None:
    files = (File("gpu/kernels/softmax/triton.py", "modified"), File("gpu/references/softmax.py", "added"))

    found = touched(Files(files, True), Config(), "gpu/")

    assert (("gpu/references/softmax.py",), ("gpu/kernels/softmax/triton.py",)) == (found.judge, found.kernels)
