"""The profile rung: which rows it looks into, and what it says of each."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kernelci.config import Config
from kernelci.errors import Stop
from kernelci.model import Finding, Metric, Row, RungResult, Unit
from kernelci.reasons import Outcome, outcome_of
from kernelci.reference import Case
from kernelci.rungs import profile as rung
from kernelci.workbench import profiler
from kernelci.workbench.ncu_report import Advice, Launch
from kernelci.workbench.profiler import Profile

METRICS = {"gpu__time_duration.sum": 50_000.0, "dram__bytes_read.sum": 1e9, "dram__bytes_write.sum": 0.0}
ADVICE = (Advice("Coalescing", "OPT", "spread accesses", 0.2), Advice("Fine", "INF", "all is well"))
SEEN = Profile((Launch("k", METRICS, advice=ADVICE),), b"report")


def _row(case: str, ns: float, delta: float | None = None) -> Row:
    metrics = [Metric("time", ns, Unit.NANOSECONDS, "time")]
    metrics += [Metric("delta", delta, Unit.FRACTION, "delta")] if delta is not None else []
    return Row(Outcome.PASSED, case, metrics=tuple(metrics))


@pytest.fixture
def referee(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the rung needs of a referee; its profiles are made up."""
    monkeypatch.setattr(profiler, "find", lambda: Path("/ncu"))

    def finding(stop: Stop, case: Case | None = None, draw: str = "", rung: str = "") -> Finding:
        return Finding(stop.reason, stop.message)

    rows = (_row("8x8-fp32", 50_000.0, 0.02), _row("9x9-fp32", 90_000.0, 0.001), _row("7x7-fp16", 10_000.0, -0.3))
    return SimpleNamespace(
        config=Config(),
        kernel=SimpleNamespace(name="add/plain"),
        out=tmp_path,
        base=None,
        finding=finding,
        profile=lambda case: SEEN,
        climbed={"benchmark": RungResult("benchmark", Outcome.PASSED, rows=rows)},
        reference=SimpleNamespace(case_of=lambda name: Case("bench", (("rows", name),))),
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("changed", ["8x8-fp32", "7x7-fp16"]),
        ("all", ["9x9-fp32", "8x8-fp32", "7x7-fp16"]),
        ("none", []),
        ("*-fp16", ["7x7-fp16"]),
        ("add/*", ["9x9-fp32", "8x8-fp32", "7x7-fp16"]),
        ("other/*", []),
    ],
)
def test_rows_that_are_looked_into(referee: Any, asked: str, expected: list[str]) -> None:
    referee.config = replace(referee.config, profile=asked)
    assert expected == [row.case for _, row in rung.choose(referee)]


def test_at_most_so_many_rows(referee: Any) -> None:
    referee.config = replace(referee.config, profile="all", profile_rows=1)
    assert ["9x9-fp32"] == [row.case for _, row in rung.choose(referee)]


def test_a_row_tells_what_the_tool_advises(referee: Any, tmp_path: Path) -> None:
    referee.config = replace(referee.config, profile="8x8-*")
    found = rung.profile(referee)
    assert ("finding: spread accesses (expected gain 20 %)",) == found.rows[0].notes
    assert {"profile_time": 50_000.0, "dram_bytes": 1e9} == {
        metric.tag: metric.value for metric in found.rows[0].metrics if metric.tag != "dram_rate"
    }
    (artifact,) = found.artifacts
    assert ("ncu-rep", b"report") == (artifact.kind, (tmp_path / artifact.path).read_bytes())


def test_against_base_it_tells_what_explains_the_change(referee: Any) -> None:
    less = Profile((Launch("k", METRICS | {"dram__bytes_read.sum": 5e8}),), b"base")
    referee.base = SimpleNamespace(profile=lambda case: less)
    row = rung.profile(referee).rows[0]
    assert "explains: DRAM bytes 477 MiB -> 954 MiB" == row.notes[0]
    assert 5e8 == next(metric.value for metric in row.metrics if metric.tag == "dram_bytes_base")


def test_a_time_that_is_not_the_benchmarks_is_told(referee: Any) -> None:
    referee.config = replace(referee.config, profile="9x9-*")
    assert rung.profile(referee).rows[0].notes[0].startswith("the profile's time is -44.4 % off the benchmark's")


@pytest.mark.parametrize(("cycles", "told"), [(99_000.0, False), (120_000.0, True)])
def test_one_kernel_is_compared_in_cycles(referee: Any, cycles: float, told: bool) -> None:
    """Its time is 44 % off, since the GPU ran at another clock."""
    (row,) = (row for row in referee.climbed["benchmark"].rows if row.case == "9x9-fp32")
    clocked = replace(row, metrics=(*row.metrics, Metric("sm_cycles", 1e5, Unit.COUNT, "SM cycles")))
    referee.climbed = {"benchmark": RungResult("benchmark", Outcome.PASSED, rows=(clocked,))}
    referee.config = replace(referee.config, profile="all")
    referee.profile = lambda case: Profile((Launch("k", METRICS | {"sm__cycles_elapsed.max": cycles}),), b"report")
    notes = [note for note in rung.profile(referee).rows[0].notes if "off the benchmark's" in note]
    assert (
        ["the profile's time is -44.4 % and its SM cycles 20 % off the benchmark's: compare shares, not times"]
        if told
        else []
    ) == notes


def test_one_kernel_is_compared_in_time_too(referee: Any) -> None:
    """NVML showed the highest clock throughout, the tool a lower one: cycles are off, times are not."""
    (row,) = (row for row in referee.climbed["benchmark"].rows if row.case == "8x8-fp32")
    clocked = replace(row, metrics=(*row.metrics, Metric("sm_cycles", 1.2e5, Unit.COUNT, "SM cycles")))
    referee.climbed = {"benchmark": RungResult("benchmark", Outcome.PASSED, rows=(clocked,))}
    referee.config = replace(referee.config, profile="all")
    referee.profile = lambda case: Profile((Launch("k", METRICS | {"sm__cycles_elapsed.max": 1e5}),), b"report")
    assert [] == [note for note in rung.profile(referee).rows[0].notes if "off the benchmark's" in note]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Loads are spread. This costs time.", "Loads are spread"),
        (
            "It issues an instruction every 1.8 cycles. This may be less than possible.",
            "It issues an instruction every 1.8 cycles",
        ),
        ("x" * 300, "x" * 239 + "…"),
    ],
)
def test_advice_is_cut_to_its_first_sentence(text: str, expected: str) -> None:
    assert [expected] == rung.advice([Launch("k", {}, advice=(Advice("a rule", "OPT", text),))])


def test_advice_on_other_memory_is_left_out() -> None:
    text = "Out of the 268 bytes sent to the L2 Compression unit only 0.00% were successfully compressed."
    assert [] == rung.advice([Launch("k", {}, advice=(Advice("a rule", "OPT", text, 0.3),))])


def _refuse(reason: str) -> Any:
    def profile(case: Case) -> Profile:
        raise Stop(reason, "why")

    return profile


@pytest.mark.parametrize(("reason", "rows"), [("no-counters", 1), ("profiler-refused", 2)])
def test_what_can_not_be_profiled_is_skipped(referee: Any, reason: str, rows: int) -> None:
    referee.profile = _refuse(reason)
    found = rung.profile(referee)
    assert [(Outcome.SKIPPED, reason)] * rows == [
        (row.outcome, row.finding.reason) for row in found.rows if row.finding
    ]
    assert Outcome.SKIPPED is outcome_of(reason)


def test_a_base_that_can_not_be_profiled_costs_the_comparison_only(referee: Any) -> None:
    referee.base = SimpleNamespace(profile=_refuse("profiler-refused"))
    assert "base was not profiled: why" in rung.profile(referee).rows[0].notes


def test_without_the_tool_the_rung_is_skipped(referee: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler, "find", lambda: None)
    with pytest.raises(Stop) as caught:
        rung.profile(referee)
    assert "no-profiler" == caught.value.reason


def test_nothing_to_look_into_is_not_requested(referee: Any) -> None:
    referee.config = replace(referee.config, profile="none")
    with pytest.raises(Stop) as caught:
        rung.profile(referee)
    assert "not-requested" == caught.value.reason
