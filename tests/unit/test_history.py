"""Reports become flat records, and files whose names say what is in them."""

import datetime
from types import ModuleType

import msgspec
import pytest

from kernelci import history
from kernelci.errors import ReportError
from kernelci.history import Measure
from kernelci.model import Environment, Finding, Metric, Row, RungResult, Unit
from kernelci.reasons import Outcome

NIGHT = datetime.date(2026, 11, 30)


def _metric(tag: str, value: float, unit: Unit = Unit.NONE, half: float = 0.0) -> Metric:
    ends = (value - half, value + half) if half else (None, None)
    return Metric(tag, value, unit, tag, "", *ends)


def _timed(*rows: Row) -> RungResult:
    ceilings = (_metric("copy", 4.27e12), _metric("matmul:float16", 7.2e14), _metric("matmul:bfloat16", 7.1e14))
    return RungResult("benchmark", Outcome.PASSED, 3.0, rows=rows, metrics=ceilings)


def test_a_row_that_passed_is_a_record_with_its_times_and_the_nights_probes(reports: ModuleType) -> None:
    row = Row(Outcome.PASSED, "8192x256-fp32", metrics=(_metric("time", 9250.0, Unit.NANOSECONDS, 50.0),))
    report = reports.report((reports.kernel("softmax/triton", reports.checked(), _timed(row)),))

    (found,) = history.of_report(report, NIGHT, "ab" * 20, "https://example.org/run/1")

    assert Measure(
        NIGHT, report.started_at, "softmax/triton", Outcome.PASSED, "8192x256-fp32", commit="ab" * 20,
        run="https://example.org/run/1", gpu="NVIDIA H200", target="sm_90a", driver="580.95.05", dsl="triton 3.6.0",
        source="a86c6e9aa86c6e9a", time_ns=9250.0, low_ns=9200.0, high_ns=9300.0, psnr_db=74.13,
        copy=4.27e12, matmul=7.1e14, error_ratio=0.62,
    ) == found  # fmt: skip


def test_the_worst_psnr_counts(reports: ModuleType) -> None:
    rows = tuple(
        Row(Outcome.PASSED, name, metrics=(_metric("psnr:y", value),)) for name, value in (("a", 80), ("b", 60))
    )
    checked = RungResult("correctness", Outcome.PASSED, rows=rows)

    (found,) = history.of_report(reports.report((reports.kernel("softmax/triton", checked),)), NIGHT)

    assert 60 == found.psnr_db


def test_a_row_that_can_not_be_trusted_has_no_time(reports: ModuleType) -> None:
    row = Row(Outcome.INVALID, "c", finding=Finding("clocks-disagree", "m"), metrics=(_metric("time", 1.0),))
    timed = RungResult("benchmark", Outcome.INVALID, finding=Finding("clocks-disagree", "m"), rows=(row,))

    (found,) = history.of_report(reports.report((reports.kernel("softmax/triton", timed),)), NIGHT)

    assert (Outcome.INVALID, "clocks-disagree", None) == (found.outcome, found.reason, found.time_ns)


def test_a_row_that_only_the_gate_stopped_has_its_time(reports: ModuleType) -> None:
    row = Row(Outcome.FAILED, "c", finding=Finding("slower", "m"), metrics=(_metric("time", 5.0),))
    timed = RungResult("benchmark", Outcome.FAILED, finding=Finding("slower", "m"), rows=(row,))

    (found,) = history.of_report(reports.report((reports.kernel("softmax/triton", timed),)), NIGHT)

    assert 5.0 == found.time_ns


def test_a_kernel_that_was_not_timed_has_one_record_with_the_reason(reports: ModuleType) -> None:
    stopped = reports.stop("correctness", Finding("wrong", "m"))

    (found,) = history.of_report(reports.report((reports.kernel("softmax/triton", stopped),)), NIGHT)

    assert ("", Outcome.FAILED, "wrong") == (found.case, found.outcome, found.reason)


def _compiled(*rows: tuple[str, str, int]) -> RungResult:
    """The rung compile, 2.5 s long: a case, a target and the registers of each build."""
    made = tuple(
        Row(
            Outcome.PASSED, case, target,
            metrics=(
                _metric("registers", registers, Unit.COUNT), _metric("stack", 16), _metric("code", 4096),
                _metric("static_shared", 1024), _metric("dynamic_shared", 512),
            ),
        )
        for case, target, registers in rows
    )  # fmt: skip
    return RungResult("compile", Outcome.PASSED, 2.5, rows=made)


def _known(measure: Measure) -> tuple[object, ...]:
    return (
        measure.registers, measure.stack_bytes, measure.shared_bytes, measure.code_bytes, measure.compile_s,
        measure.time_ns,
    )  # fmt: skip


def test_a_night_without_a_gpu_has_what_compiling_told_for_each_case_and_target(reports: ModuleType) -> None:
    built = _compiled(("c", "sm_80", 40), ("c", "sm_90a", 48), ("d", "sm_90a", 32))
    skipped = reports.skip("benchmark", "no-gpu", "needs a GPU")
    kernel = reports.kernel("softmax/triton", built, reports.checked(), skipped)
    where = Environment("m", "3", versions={"triton": "3.6.0"})

    found = history.of_report(reports.report((kernel,), where), NIGHT)

    assert [("c", "sm_80", 40), ("c", "sm_90a", 48), ("d", "sm_90a", 32)] == [
        (each.case, each.target, each.registers) for each in found
    ]
    assert (40, 16, 1536, 4096, 2.5, None) == _known(found[0])
    assert (Outcome.PASSED, "no-gpu", 0.62, "triton 3.6.0") == (
        found[0].outcome, found[0].reason, found[0].error_ratio, found[0].dsl,
    )  # fmt: skip


def test_with_a_gpu_what_compiling_told_of_its_target_stands_beside_the_time(reports: ModuleType) -> None:
    built = _compiled(("c", "sm_80", 99), ("c", "sm_90a", 40), ("c", "sm_90a", 48))
    row = Row(Outcome.PASSED, "c", metrics=(_metric("time", 5.0),))

    (found,) = history.of_report(reports.report((reports.kernel("softmax/triton", built, _timed(row)),)), NIGHT)

    assert (48, 16, 1536, 4096, 2.5, 5.0) == _known(found)


def test_a_kernel_that_stopped_later_has_its_reason_in_each_case(reports: ModuleType) -> None:
    stopped = reports.stop("correctness", Finding("wrong", "m"))
    kernel = reports.kernel("softmax/triton", _compiled(("c", "sm_90a", 40), ("d", "sm_90a", 40)), stopped)

    found = history.of_report(reports.report((kernel,)), NIGHT)

    assert [("c", Outcome.FAILED, "wrong", None), ("d", Outcome.FAILED, "wrong", None)] == [
        (each.case, each.outcome, each.reason, each.time_ns) for each in found
    ]


def test_the_clock_policy_is_one_text() -> None:
    where = Environment("m", "3", clocks="max 1980 MHz", power_limit_w=700.0, ecc="on")

    assert "max 1980 MHz, 700 W, ECC on" == history._clocks(where)


def test_the_recorded_report_of_an_h200_is_a_night_with_times(tmp_path) -> None:
    from pathlib import Path

    from kernelci import results

    report = results.read(Path(__file__).parents[1] / "golden" / "h200")

    found = history.of_report(report, NIGHT)

    assert {kernel.name for kernel in report.kernels} == {each.kernel for each in found}
    assert (60, True) == (len(found), all(each.time_ns for each in found))


def test_the_same_records_have_the_same_name_and_bytes() -> None:
    records = [Measure(NIGHT, "t", "softmax/a", Outcome.PASSED, "c", gpu="NVIDIA H200", time_ns=1.5)]

    path, data = history.night_file(records)

    assert (path, data) == history.night_file(records)
    assert path.startswith("nights/2026/11/2026-11-30_nvidia-h200_")
    assert records == msgspec.json.Decoder(Measure).decode_lines(history.unpacked(data))


def test_nothing_makes_no_file() -> None:
    with pytest.raises(ReportError):
        history.night_file(())


@pytest.mark.parametrize(
    ("path", "month", "day"),
    [
        ("nights/2026/02/2026-02-03_cpu_0123456789abcdef.jsonl.gz", ("2026-02", "cpu"), datetime.date(2026, 2, 3)),
        ("months/2026-12_nvidia-h200_0123456789abcdef.jsonl.gz", None, datetime.date(2026, 12, 31)),
        ("months/2026-02_nvidia-h200_0123456789abcdef.jsonl.gz", None, datetime.date(2026, 2, 28)),
        ("events/2026/2026-02-03_0123456789abcdef.jsonl", None, datetime.date(2026, 2, 3)),
        ("README.md", None, None),
    ],
)
def test_names_say_what_is_in_the_files(path: str, month: object, day: object) -> None:
    assert (month, day) == (history.month_of(path), history.last_day(path))


@pytest.mark.parametrize("data", [b"", b"no gzip", history.packed(b"x" * 50)[:-9], history.packed(b"x" * 101)])
def test_what_is_broken_or_too_large_is_refused(data: bytes) -> None:
    if not data:
        assert b"" == history.unpacked(data, 100)
        return
    with pytest.raises(ReportError):
        history.unpacked(data, 100)
