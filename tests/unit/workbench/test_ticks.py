"""The SM clock by waits of a known number of cycles."""

import pytest

from kernelci.workbench.ticks import LONG, SHORT, rate, ticking


def _waits(hertz: float, event_ms: float = 0.004) -> list[float]:
    return [1e3 * cycles / hertz + event_ms for cycles in (SHORT, LONG, LONG)]


@pytest.mark.parametrize("hertz", [1.2e9, 1.62e9, 1.98e9])
def test_what_an_event_costs_is_left_out(hertz: float) -> None:
    assert pytest.approx(hertz) == rate(*_waits(hertz))


@pytest.mark.parametrize("which", [1, 2])
def test_a_wait_in_which_something_else_computed_says_nothing(which: int) -> None:
    waits = _waits(1.8e9)
    waits[which] += 1.0
    assert rate(*waits) == 0.0


def test_a_short_wait_that_takes_longest_says_nothing() -> None:
    short, *long = _waits(1.8e9)
    assert rate(short + 1.0, *long) == 0.0


def test_a_processor_has_no_clock_to_ask() -> None:
    assert ticking("cpu")() == 0.0
