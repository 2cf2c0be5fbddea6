"""A call's figures from its launches, and what explains the difference between two calls."""

import pytest

from kernelci.model import Metric, Unit
from kernelci.workbench import counters
from kernelci.workbench.ncu_report import parse

from .ncu_pages import RAW


def test_figures_of_a_call() -> None:
    found = {metric.tag: metric.value for metric in counters.figures(parse(RAW))}
    assert (
        pytest.approx(
            {
                "profile_time": 123_000.0,
                "dram_bytes": 402_654_208.0,
                "dram_rate": 402_654_208.0 / 123e-6,
                "launches": 2,
                "dram_use": 0.815,
                "achieved_occupancy": 0.625,
                "sm_cycles": 210_123.0,
                "tensor_use": 0.0,
                "bank_conflicts": 0.25,
                "stall_long_scoreboard": 0.75,
                "stall_wait": 0.25,
            }
        )
        == found
    )


def test_no_launch_has_no_figures() -> None:
    assert () == counters.figures(())


def _metrics(**values: float) -> list[Metric]:
    units = {"profile_time": Unit.NANOSECONDS, "dram_bytes": Unit.BYTES}
    return [Metric(tag, value, units.get(tag, Unit.FRACTION), tag.replace("_", " ")) for tag, value in values.items()]


def test_what_goes_the_way_of_the_time_comes_first() -> None:
    base = _metrics(profile_time=100e3, dram_bytes=2.0**20, bank_conflicts=0.0, dram_use=0.9, stall_wait=0.5)
    head = _metrics(profile_time=160e3, dram_bytes=2.0**20, bank_conflicts=0.4, dram_use=0.6, stall_wait=0.2)
    assert ("bank conflicts 0 % -> 40 %", "dram use 90 % -> 60 %", "stall wait 50 % -> 20 %") == counters.explained(
        base, head
    )


def test_small_changes_explain_nothing() -> None:
    base, head = _metrics(profile_time=100e3, dram_bytes=1e9), _metrics(profile_time=110e3, dram_bytes=1.01e9)
    assert () == counters.explained(base, head)
