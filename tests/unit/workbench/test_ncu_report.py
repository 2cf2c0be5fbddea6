"""Nsight Compute's pages read: numbers in one system of units, rules in plain words, anything else refused."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench import ncu_report
from kernelci.workbench.ncu_report import Unreadable, parse

from .ncu_pages import DETAILS, RAW


def test_launches_with_their_metrics() -> None:
    first, second = parse(RAW)
    assert ("softmax_tile", "(65,536, 1, 1)", "tail") == (first.kernel, first.grid, second.kernel)
    assert pytest.approx((268_435_456.0, 120_000.0, 0.815)) == (
        first.metrics["dram__bytes_read.sum"],
        first.metrics["gpu__time_duration.sum"],
        first.metrics["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"],
    )
    assert "launch__occupancy_limit_registers" not in first.metrics


@pytest.mark.parametrize(
    ("unit", "value"), [("us", "120"), ("usecond", "120"), ("msecond", "0.12"), ("nsecond", "120,000")]
)
def test_units_of_older_versions(unit: str, value: str) -> None:
    text = RAW.replace('"ns"', f'"{unit}"').replace('"120,000"', f'"{value}"')
    assert pytest.approx(120_000.0) == parse(text)[0].metrics["gpu__time_duration.sum"]


def test_rules_in_plain_words_the_largest_gain_first() -> None:
    advice = parse(RAW, DETAILS)[0].advice
    assert [("SharedMemoryConflicts", 0.21), ("CPIStall", 0.185), ("LaunchConfig", 0.0)] == [
        (each.rule, each.speedup) for each in advice
    ]
    assert advice[1].text.endswith("dependency. See the Memory Workload Analysis section and the guide.")
    assert () == parse(RAW, DETAILS)[1].advice


def test_stalls_as_shares_of_all_waiting() -> None:
    assert (("long scoreboard", 0.75), ("wait", 0.25)) == ncu_report.stalls(parse(RAW)[0])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "==ERROR== Failed to open the report file\n",
        "\x7fELF binary",
        RAW.split("\n")[1] + "\n",
        RAW[: RAW.index('"","","",')],
        '"ID","Kernel Name"\n',
    ],
)
def test_what_is_no_page_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        parse(text)


def test_a_page_that_is_cut_off_keeps_what_is_whole() -> None:
    assert ["softmax_tile"] == [each.kernel for each in parse(RAW[: RAW.rindex('"1","8"')])]


@given(st.text(max_size=500))
def test_any_text_is_read_or_refused(text: str) -> None:
    for page in (text, f'"ID","a__b"\n"","ns"\n{text}'):
        with contextlib.suppress(Unreadable):
            parse(page, text)
