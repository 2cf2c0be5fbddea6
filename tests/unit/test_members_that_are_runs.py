"""Members of the corpus that are no kernel but a run or a report: F2 (what leaves its judging), m40 and m41."""

import datetime
from pathlib import Path
from types import ModuleType

import pytest

from kernelci import basing, catalog, comparison, config, digest, ladder
from kernelci.config import GateOptions
from kernelci.gate import Gate
from kernelci.model import Change, Finding, KernelReport, LostRow, Metric, Report, Row, RungResult, Unit
from kernelci.reasons import Outcome
from kernelci.reporters import Context, console, github, markdown

REFERENCE = """
from kernelci.reference import check, like
def cases(): yield from (check(n=n, dtype="float32") for n in (5, 70))
def inputs(case, draw): return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case): return {"y": like("x")}
def reference(x): return 2 * x
def cost(case): return case.n
"""
KERNEL = """# /// script
# dependencies = []
# [tool.kernelci]
# reference = "double"
# backend = "triton"
# entry = "double"
# targets = ["sm_80", "sm_90a"]
# ///
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(y + place, 2 * tl.load(x + place, mask=place < n, other=0.0), mask=place < n)


def double(x, y):
    doubled[(1,)](x, y, x.numel(), 128)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one kernel."""
    return _project(tmp_path / "head", KERNEL)


def _project(root: Path, kernel: str, name: str = "plain") -> Path:
    for place, text in (("references/double.py", REFERENCE), (f"kernels/double/{name}.py", kernel)):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, encoding="utf-8")
    return root


def _climb(root: Path, *wanted: str, base: Path | None = None, case: str = "", **flags: int) -> Report:
    options = config.load(root, {}, {"cache": str(root / "cache"), **flags})
    found = catalog.scan(root, options)
    other = basing.in_folder(base) if base is not None else None
    return ladder.climb(found, options, ladder.Plan(found.kernels, root / "out", wanted, case=case, base=other))


def test_f2_a_target_that_the_card_no_longer_names_is_a_lost_row(root: Path, tmp_path: Path) -> None:
    base = _project(tmp_path / "base", KERNEL)
    path = root / "kernels" / "double" / "plain.py"
    path.write_text(KERNEL.replace('"sm_80", "sm_90a"', '"sm_80"'), encoding="utf-8")
    gone = LostRow("every case", "removed", "sm_90a", "the card no longer names sm_90a")
    assert (gone,) == _climb(root, "precheck", base=base).kernels[0].lost


def test_f2_targets_that_stay_are_not_lost(root: Path, tmp_path: Path) -> None:
    assert () == _climb(root, "precheck", base=_project(tmp_path / "base", KERNEL)).kernels[0].lost


def test_f2_what_is_gone_is_said_before_anything_else(reports: ModuleType) -> None:
    lost = (LostRow("every case", "removed", "sm_90a"),)
    plain = reports.kernel("softmax/triton", reports.checked())
    kernel = KernelReport(plain.name, plain.reference, plain.backend, plain.path, plain.sha256, plain.rungs, lost)
    change = Change("a" * 40, "b" * 40, removed=("softmax/old",))
    report = reports.report((kernel,), change=change)
    page = markdown.render(report, Context())
    assert [True, True] == [0 < page.find(gone) < page.find("<details>") for gone in ("softmax/old", "every case")]
    annotations = github.render(report, Context()).splitlines()
    assert ["softmax/old" in annotations[0], "every case" in annotations[1]] == [True, True]
    shown = console.render(report, Context())
    assert [True, True] == [gone in shown for gone in ("softmax/old", "every case")]


def test_m40_a_kernel_whose_every_case_is_skipped_passes_no_case(root: Path) -> None:
    report = _climb(root, "correctness", interpreter_elements=1)
    found = {one.rung: one for one in report.kernels[0].rungs}
    for name in ("run", "correctness"):
        assert (Outcome.SKIPPED, "interpreter-cost") == (found[name].outcome, _reason(found[name]))
    assert (Outcome.SKIPPED, 3) == (report.kernels[0].outcome, report.exit_code)
    assert "Nothing was executed (1 kernel); that is never green." == digest.headline(report).sentence


@pytest.mark.parametrize("case", ["nonsense", "1000-fp32"])
def test_m40_a_case_that_nobody_knows_or_that_needs_a_gpu_is_no_pass(root: Path, case: str) -> None:
    reference = REFERENCE.replace("check, like", "bench, check, like").replace(
        "(5, 70))", "(5, 70)); yield bench('a model', n=1000, dtype='float32')"
    )
    (root / "references" / "double.py").write_text(reference, encoding="utf-8")
    report = _climb(root, "correctness", case=case)
    (run, correctness) = report.kernels[0].rungs[2:4]
    assert ("no-case", "no-case", 3) == (_reason(run), _reason(correctness), report.exit_code)
    assert "5-fp32, 70-fp32" in (run.finding.message if run.finding else "")


def test_m40_what_only_compiled_is_not_green_where_cases_were_asked_for(reports: ModuleType) -> None:
    kernel = reports.kernel("softmax/cuda", reports.compiled("sm_90a"), *map(_no_gpu, ("run", "correctness")))
    report = reports.report((kernel,))
    assert (Outcome.SKIPPED, 3) == (kernel.outcome, report.exit_code)


def test_m40_what_was_only_to_be_compiled_is_green(reports: ModuleType) -> None:
    left = reports.skip("correctness", "not-requested")
    assert 0 == reports.report((reports.kernel("softmax/cuda", reports.compiled("sm_90a"), left),)).exit_code


def test_m40_a_kernel_that_needs_a_gpu_beside_one_that_passed_is_said(reports: ModuleType) -> None:
    passed = reports.kernel("softmax/triton", reports.checked())
    idle = reports.kernel("softmax/cuda", reports.compiled("sm_90a"), _no_gpu("run"))
    report = reports.report((passed, idle))
    said = digest.headline(report).sentence
    assert (0, True) == (
        report.exit_code,
        said.startswith("1 of 2 kernels passed every rung that ran; 1 executed nothing"),
    )


def test_m40_a_kernel_whose_every_case_is_skipped_one_by_one_is_not_green_beside_others(reports: ModuleType) -> None:
    passed = reports.kernel("softmax/triton", reports.checked())
    finding = Finding("cost", "2147483648 elements")
    rows = (Row(Outcome.SKIPPED, "65536x32768", finding=finding),)
    over = reports.kernel("matmul/triton", RungResult("run", Outcome.SKIPPED, finding=finding, rows=rows))
    report = reports.report((passed, over))
    said = "Every case of matmul/triton was skipped; that is never green."
    assert (Outcome.SKIPPED, 3, said) == (report.outcome, report.exit_code, digest.headline(report).sentence)
    for render in (markdown.render, console.render):
        assert said in render(report, Context())


def _no_gpu(rung: str) -> RungResult:
    return RungResult(rung, Outcome.SKIPPED, finding=Finding("no-gpu", "no GPU on this machine"))


def _reason(rung: RungResult) -> str:
    return rung.finding.reason if rung.finding else ""


def test_m40_a_report_in_which_all_is_skipped_is_never_green(reports: ModuleType) -> None:
    report = reports.all_skipped()
    said = digest.headline(report).sentence
    assert (Outcome.SKIPPED, 3, "Nothing was executed (3 kernels); that is never green.") == (
        report.outcome, report.exit_code, said,
    )  # fmt: skip


def test_m41_a_report_of_two_thousand_rows_says_how_many_and_the_worst(reports: ModuleType) -> None:
    page = markdown.render(reports.large(2000), Context())
    assert len(page.encode()) <= markdown.LIMITS["comment"]
    assert ("and 1,991 more" in page, "2000×" in page) == (True, True)  # how many failed, and the worst by its bound


def test_m41_a_base_that_failed_is_no_faster_head(reports: ModuleType) -> None:
    time = Metric("time", 4100.0, Unit.NANOSECONDS, "time")
    row = Row(Outcome.PASSED, "64x64", metrics=(time,), notes=("no comparison: base ends as wrong: 3 of 9 elements",))
    benchmark = RungResult("benchmark", Outcome.PASSED, rows=(row,))
    report = reports.report((reports.kernel("softmax/triton", reports.checked(), benchmark),))
    settled = comparison.settle(report, Gate(GateOptions(), datetime.date(2026, 11, 30)))
    verdicts = comparison.tally(comparison.times(settled))
    assert (Outcome.PASSED, (row,), "") == (settled.outcome, settled.kernels[0].rungs[-1].rows, verdicts)
    assert "base ends as wrong" in markdown.render(settled, Context())


def test_m41_a_base_that_failed_lost_nothing() -> None:
    failed = Row(Outcome.FAILED, "64x64", finding=Finding("wrong", "3 of 9 elements"))
    passed = Row(Outcome.PASSED, "64x64")
    assert () == comparison.lost((failed,), (passed,))
