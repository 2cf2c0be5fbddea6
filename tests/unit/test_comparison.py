"""Times of head against base: verdicts over a whole report, what the gate stops, what is shown."""

import datetime
from typing import Any

import msgspec
import pytest

from kernelci import comparison, results
from kernelci.config import GateOptions, GateRule, Waiver
from kernelci.gate import Gate
from kernelci.model import Change, Finding, LostRow, Metric, Report, Row, RungResult, Unit, Verdict
from kernelci.reasons import Outcome

TODAY = datetime.date(2026, 11, 30)
F = Unit.FRACTION


def fraction(tag: str, value: float, half: float) -> Metric:
    return Metric(tag, value, F, "change", "", value - half, value + half)


def compared(delta: float, p: float, half: float = 0.003, case: str = "64x64-fp16", **more: Any) -> Row:
    """A row as the benchmark rung leaves it: measured, once again too (`again`, `cycles`), and not judged yet."""
    kind, again, cycles = more.pop("kind", ""), more.pop("again", delta), more.pop("cycles", None)
    others = {"again": again, "cycles": cycles, "plain": more.pop("plain", None)}
    metrics = (
        Metric(f"delta{kind}", delta, F, "change", "", delta - half, delta + half),
        Metric(f"p{kind}", p, F, "p"),
        Metric("blocks", more.pop("blocks", 12), Unit.COUNT, "blocks"),
        Metric(f"noise{kind}", more.pop("noise", 0.0), F, "noise"),
        *(fraction(f"{tag}{kind}", value, half) for tag, value in others.items() if value is not None),
    )
    return Row(Outcome.PASSED, case, metrics=metrics, **more)


def report(reports: Any, *rows: Row, name: str = "softmax/triton") -> Report:
    kernel = reports.kernel(name, reports.checked(), RungResult("benchmark", Outcome.PASSED, rows=rows))
    return reports.report((kernel,))


def settled(reports: Any, *rows: Row, **options: Any) -> Report:
    return comparison.settle(report(reports, *rows), Gate(GateOptions(**options), TODAY))


def rows(found: Report) -> tuple[Row, ...]:
    return found.kernels[0].rungs[-1].rows


def value(row: Row, tag: str) -> float:
    (found,) = (metric.value for metric in row.metrics if metric.tag == tag)
    return float(found)


@pytest.mark.parametrize(
    ("delta", "p", "half", "expected"),
    [
        (0.02, 1e-7, 0.003, Verdict.SLOWER),
        (-0.02, 1e-7, 0.003, Verdict.FASTER),
        (0.001, 0.5, 0.003, Verdict.SAME),
        (0.02, 1e-2, 0.003, Verdict.UNKNOWN),
        (0.004, 1e-9, 0.003, Verdict.UNKNOWN),
    ],
)
def test_verdict(delta: float, p: float, half: float, expected: Verdict, reports) -> None:
    assert expected is rows(settled(reports, compared(delta, p, half)))[0].verdict


def test_slower_fails_with_its_size_and_floor(reports) -> None:
    found = settled(reports, compared(0.021, 1e-7))
    rung = found.kernels[0].rungs[-1]
    message = "2.1 % slower than base (1.8 to 2.4 %), floor 0.5 %"
    assert (Outcome.FAILED, Finding("slower", message), 1) == (rung.outcome, rung.finding, found.exit_code)
    assert rung.rows[0].finding == rung.finding


@pytest.mark.parametrize("row", [(-0.02, 1e-7), (0.001, 0.5), (0.02, 0.01)])
def test_nothing_else_fails(row: tuple[float, float], reports) -> None:
    found = settled(reports, compared(*row))
    assert (0, None) == (found.exit_code, rows(found)[0].finding)


def test_a_q_counts_all_rows_of_the_report(reports) -> None:
    alone = settled(reports, compared(0.02, 2e-4))
    among = settled(reports, compared(0.02, 2e-4), *(compared(0.0, 0.9, case=f"{index}x1-fp16") for index in range(59)))
    assert [Verdict.SLOWER, Verdict.UNKNOWN] == [rows(each)[0].verdict for each in (alone, among)]
    assert pytest.approx((2e-4, 60 * 2e-4)) == (value(rows(alone)[0], "q"), value(rows(among)[0], "q"))


def test_few_blocks_block_nothing(reports) -> None:
    assert Verdict.UNKNOWN is rows(settled(reports, compared(0.5, 1e-12, blocks=8)))[0].verdict


def test_noise_holds_back(reports) -> None:
    row = rows(settled(reports, compared(0.02, 1e-7, noise=0.03)))[0]
    assert (Verdict.UNKNOWN, pytest.approx(0.0304, abs=1e-4)) == (row.verdict, value(row, "floor"))


def test_a_rule_has_a_floor_of_its_own(reports) -> None:
    found = settled(reports, compared(0.02, 1e-7), rule=(GateRule(kernel="softmax/*", floor=0.03),))
    assert (Verdict.SAME, 0.03) == (rows(found)[0].verdict, value(rows(found)[0], "floor"))


def test_a_waiver_lets_slower_pass_and_says_so(reports) -> None:
    waiver = Waiver(kernel="softmax/*", owner="ada", reason="exact now", expires=TODAY)
    found = settled(reports, compared(0.02, 1e-7), waiver=(waiver,))
    assert "waived by ada until 2026-11-30: exact now" == rows(found)[0].notes[-1]
    assert (Verdict.SLOWER, 0) == (rows(found)[0].verdict, found.exit_code)


def test_notes_of_the_gate_are_for_what_is_slower(reports) -> None:
    waiver = Waiver(kernel="*", owner="ada", reason="exact now", expires=TODAY)
    assert () == rows(settled(reports, compared(0.0, 0.9), waiver=(waiver,)))[0].notes


def test_a_row_without_p_keeps_its_verdict(reports) -> None:
    row = Row(Outcome.PASSED, "64x64-fp16", verdict=Verdict.SAME, notes=("the same machine code",))
    assert (row,) == rows(settled(reports, row))


def test_a_row_that_is_invalid_stays_so_and_counts_for_nothing(reports) -> None:
    bad = msgspec.structs.replace(
        compared(0.02, 1e-9), outcome=Outcome.SKIPPED, finding=Finding("no-gpu", "no GPU on this machine")
    )
    found = settled(reports, bad, compared(0.02, 2e-4))
    assert (bad, Verdict.SLOWER) == (rows(found)[0], rows(found)[1].verdict)


def test_settling_twice_is_settling_once(reports) -> None:
    gate = Gate(GateOptions(), TODAY)
    once = comparison.settle(report(reports, compared(0.02, 1e-7), compared(0.0, 0.9)), gate)
    assert once == comparison.settle(once, gate)


DOUBTS = [
    ({"again": 0.001}, "SLOWER by +2.00 % [+1.70, +2.30], but measured once again it is +0.10 % [-0.20, +0.40]"),
    ({"again": -0.02}, "SLOWER by +2.00 % [+1.70, +2.30], but measured once again it is -2.00 % [-2.30, -1.70]"),
    ({"again": 0.004}, "SLOWER by +2.00 % [+1.70, +2.30], but measured once again it is +0.40 % [+0.10, +0.70]"),
    ({"again": None}, "SLOWER by +2.00 % [+1.70, +2.30], but it was not measured once again"),
    (
        {"cycles": 0.002},
        "SLOWER by +2.00 % [+1.70, +2.30], but in cycles of the SM clock it is +0.20 % [-0.10, +0.50]: "
        "its clock was another",
    ),
]


@pytest.mark.parametrize(("shown", "said"), DOUBTS)
def test_what_another_measurement_does_not_show_is_unknown(reports, shown: dict[str, Any], said: str) -> None:
    found = settled(reports, compared(0.02, 1e-7, **shown))
    row = rows(found)[0]
    assert (Verdict.UNKNOWN, Outcome.PASSED, (said,), 0) == (row.verdict, row.outcome, row.notes, found.exit_code)


def test_what_times_as_they_were_show_is_not_the_same(reports) -> None:
    said = "as the times were, with what followed the SM clock, it is +2.00 % [+1.70, +2.30]"
    found = [rows(settled(reports, compared(0.001, 0.5, plain=plain)))[0] for plain in (0.02, 0.001)]
    assert [(Verdict.UNKNOWN, (said,)), (Verdict.SAME, ())] == [(row.verdict, row.notes) for row in found]


def test_a_faster_that_is_not_there_again_is_unknown(reports) -> None:
    assert Verdict.UNKNOWN is rows(settled(reports, compared(-0.02, 1e-7, again=0.0)))[0].verdict


def test_what_is_shown_again_and_in_cycles_says_so(reports) -> None:
    row = rows(settled(reports, compared(0.02, 1e-7, again=0.018, cycles=0.021)))[0]
    said = "measured once again by fresh processes: +1.80 % [+1.50, +2.10]"
    assert (Verdict.SLOWER, (said,)) == (row.verdict, row.notes)


def test_cycles_of_what_is_the_same_do_not_matter(reports) -> None:
    assert Verdict.SAME is rows(settled(reports, compared(0.001, 0.5, cycles=0.04)))[0].verdict


def test_a_row_that_is_not_compared_on_the_device_keeps_its_verdict(reports) -> None:
    row = compared(0.12, 1e-7, 0.01, kind="_end_to_end", verdict=Verdict.SAME)
    assert (row,) == rows(settled(reports, row))


def test_another_choice_of_the_autotuner_is_the_cause(reports) -> None:
    note = f"{comparison.CHOICE}BLOCK: 64 -> BLOCK: 128"
    row = msgspec.structs.replace(compared(0.02, 1e-7, notes=(note,)), verdict=Verdict.SLOWER)
    (found,) = comparison.times(report(reports, row)).slower
    assert found.cause.startswith("autotuner: BLOCK: 64 -> BLOCK: 128")


def test_another_gate_frees_what_the_first_one_stopped(reports) -> None:
    once = settled(reports, compared(0.02, 1e-7))
    again = comparison.settle(once, Gate(GateOptions(blocks=False), TODAY))
    assert (1, 0) == (once.exit_code, again.exit_code)


def test_a_slower_end_to_end_has_a_floor_of_its_own(reports) -> None:
    cold = compared(-0.02, 1e-7)
    host = compared(0.12, 1e-7, 0.01, kind="_end_to_end")
    both = msgspec.structs.replace(cold, metrics=(*cold.metrics, *host.metrics[:2], *host.metrics[3:]))
    row = rows(settled(reports, both))[0]
    assert Verdict.SLOWER is row.verdict
    assert row.finding is not None
    assert "end to end 12 % slower than base (11 to 13 %), floor 5 %" == row.finding.message


def test_the_command_repeats_the_comparison(reports) -> None:
    before = msgspec.structs.replace(report(reports, compared(0.02, 1e-7)), change=Change("b" * 40, "a" * 40))
    row = rows(comparison.settle(before, Gate(GateOptions(), TODAY)))[0]
    assert row.finding is not None
    expected = f"kernelci run softmax/triton --rungs benchmark --case 64x64-fp16 --base {'b' * 40}"
    assert expected == row.finding.reproduce


def test_a_settled_report_can_be_read_again(reports) -> None:
    found = settled(reports, compared(0.02, 1e-7, noise="inf"), compared(0.02, 1e-7))
    assert rows(found)[1] == rows(results.decode(results.encode(found)))[1]


def test_a_verdict_that_stands_is_taken(reports) -> None:
    row = msgspec.structs.replace(compared(0.02, 1e-7), verdict=Verdict.UNKNOWN)
    found = comparison.times(report(reports, row))
    assert (1, 0) == (len(found.unknown), len(found.slower))


def test_without_one_the_interval_decides(reports) -> None:
    assert 1 == len(comparison.times(report(reports, compared(0.02, 1e-7))).slower)


def test_a_verdict_without_a_delta_is_shown(reports) -> None:
    row = Row(Outcome.PASSED, "64x64-fp16", verdict=Verdict.SAME, notes=("the same machine code",))
    (found,) = comparison.times(report(reports, row)).same
    assert (None, "the same machine code") == (found.delta, found.cause)


def test_times_without_a_base(reports) -> None:
    metrics = (
        Metric("time", 4600.0, Unit.NANOSECONDS, "time", "", 4590.0, 4610.0),
        Metric("speedup_eager", 3.1, Unit.RATIO, "over eager"),
    )
    row = Row(Outcome.PASSED, "64x64-fp16", metrics=metrics)
    (found,) = comparison.measured(report(reports, row, compared(0.0, 0.9)))
    assert ("softmax/triton", metrics[0], metrics[1:], None) == (
        found.kernel,
        found.time,
        found.speedups,
        found.attained,
    )


def test_lost_rows() -> None:
    skipped = Row(Outcome.SKIPPED, "b", finding=Finding("no-gpu", "none"))
    base = (Row(Outcome.PASSED, "a"), Row(Outcome.PASSED, "b"), Row(Outcome.PASSED, "c"), skipped)
    head = (Row(Outcome.PASSED, "a"), skipped)
    assert (LostRow("b", "skipped", "", "none"), LostRow("c", "removed")) == comparison.lost(base, head)


def _explained(reports: Any, verdict: Verdict, *notes: str, case: str = "2048x64-fp16", target: str = "sm_90a") -> str:
    """The cause that is shown of a time of 64x64-fp16 on an sm_90a, where the dump rung has these notes."""
    dump = RungResult("dump", Outcome.PASSED, rows=(Row(Outcome.PASSED, case, target, notes=notes),))
    times = RungResult("benchmark", Outcome.PASSED, rows=(Row(Outcome.PASSED, "64x64-fp16", verdict=verdict),))
    found = reports.report((reports.kernel("softmax/triton", dump, times),))
    on_gpu = msgspec.structs.replace(found.environment, target="sm_90a")
    shown = comparison.times(msgspec.structs.replace(found, environment=on_gpu))
    return (*shown.slower, *shown.faster, *shown.same)[0].cause


NOTES = ("likely faster: occupancy 25 % -> 50 %", "likely slower: spills: 0 -> 136 bytes", "changed: blocks 4 -> 8")


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict.SLOWER, "spills: 0 -> 136 bytes (in 2048x64-fp16)"),
        (Verdict.FASTER, "occupancy 25 % -> 50 % (in 2048x64-fp16)"),
        (Verdict.SAME, ""),
    ],
)
def test_the_cause_goes_the_way_of_the_verdict(reports, verdict: Verdict, expected: str) -> None:
    assert expected == _explained(reports, verdict, *NOTES)


def test_the_cases_own_build_speaks_for_it(reports) -> None:
    assert "spills: 0 -> 136 bytes" == _explained(reports, Verdict.SLOWER, *NOTES, case="64x64-fp16")


def test_the_same_machine_code_is_said_of_another_time(reports) -> None:
    assert "the same machine code" == _explained(reports, Verdict.SLOWER, "the same machine code", case="64x64-fp16")


@pytest.mark.parametrize(("case", "target"), [("64x64-fp32", "sm_90a"), ("64x64-fp16", "sm_80")])
def test_builds_of_other_dtypes_and_targets_say_nothing(reports, case: str, target: str) -> None:
    assert "" == _explained(reports, Verdict.SLOWER, *NOTES, case=case, target=target)


def test_what_a_profile_explains_stands_behind_the_cause(reports) -> None:
    dump = Row(Outcome.PASSED, "64x64-fp16", "sm_90a", notes=NOTES)
    looked = Row(Outcome.PASSED, "64x64-fp16", notes=("explains: bank conflicts 0 % -> 40 %", "explains: more"))
    rungs = [RungResult(name, Outcome.PASSED, rows=(row,)) for name, row in (("dump", dump), ("profile", looked))]
    kernel = reports.kernel("softmax/triton", *rungs)
    found = comparison.cause(kernel, "64x64-fp16", "sm_90a", Verdict.SLOWER)
    assert "spills: 0 -> 136 bytes; bank conflicts 0 % -> 40 %" == found
