"""Shifts, steps and creep in made-up series."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelci import trend


def _noise(nights: int, sd: float, seed: int = 0) -> list[float]:
    return [float(value) for value in 10 + np.random.default_rng(seed).normal(0, sd, nights)]


def _stepped(nights: int, at: int, size: float, sd: float = 0.003, seed: int = 0) -> list[float]:
    return [value + math.log1p(size) * (place >= at) for place, value in enumerate(_noise(nights, sd, seed))]


def test_a_step_is_seen_after_two_nights() -> None:
    found = trend.shift(_stepped(42, 40, 0.05))

    assert found is not None
    assert (40, True) == (found.at, 0.04 < found.size < 0.06)


def test_a_faster_step_has_a_negative_size() -> None:
    found = trend.shift(_stepped(44, 40, -0.05))

    assert found is not None
    assert found.size < -0.04


def test_one_night_far_out_is_no_shift() -> None:
    values = [10.0] * 40
    values[-1] += 0.2

    assert trend.shift(values) is None


def test_two_nights_far_out_before_the_last_are_no_shift() -> None:
    values = [10.0] * 40
    values[-3] += 0.2

    assert trend.shift(values) is None


def test_less_than_the_floor_is_no_shift() -> None:
    assert trend.shift([10.0] * 40 + [10.004] * 5) is None


def test_a_short_series_shows_nothing() -> None:
    assert trend.shift(_stepped(7, 5, 0.5)) is None


def test_nights_that_are_known_to_be_good_are_not_looked_at_again() -> None:
    values = _stepped(45, 40, 0.05)

    assert trend.shift(values) is not None
    assert trend.shift(values, fresh=44) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(min_value=-20, max_value=20), max_size=60), st.integers(0, 60))
def test_any_series_is_answered(values: list[float], fresh: int) -> None:
    found = trend.shift(values, fresh)

    assert found is None or fresh <= found.at < len(values)


@settings(max_examples=25, deadline=None)
@given(st.floats(min_value=-5, max_value=5), st.integers(0, 100))
def test_another_unit_of_time_changes_nothing(offset: float, seed: int) -> None:
    values = _stepped(45, 40, 0.05, seed=seed)
    moved = trend.shift([value + offset for value in values])
    found = trend.shift(values)

    assert (found is None) == (moved is None)
    if found and moved:
        assert found.at == moved.at
        assert found.size == pytest.approx(moved.size)


def test_a_night_on_which_most_series_moved_is_the_machines() -> None:
    shifts = [trend.Shift(40, 0.03, 4.0)] * 7

    assert (0.03, 0.0) == (trend.together(shifts, 10, 0.0), trend.together(shifts, 30, 0.0))


def test_a_few_series_that_moved_with_the_probe_are_the_machines() -> None:
    shifts = [trend.Shift(40, 0.03, 4.0)] * 2

    assert 0.03 == trend.together(shifts, 100, 0.03)
    assert 0.0 == trend.together(shifts, 100, -0.03)
    assert 0.0 == trend.together(shifts, 100, 0.012)
    assert 0.0 == trend.together([], 100, 0.03)


def test_steps_are_dated_among_outliers() -> None:
    values = _stepped(200, 80, 0.03, sd=0.005)
    values[20] += 0.2
    values[150] += 0.1

    (found,) = trend.steps(values)

    assert abs(found.at - 80) <= 2
    assert found.size == pytest.approx(0.03, abs=0.004)


def test_two_steps_are_two() -> None:
    values = [a + b - 10 for a, b in zip(_stepped(200, 60, 0.03), _stepped(200, 140, 0.05, seed=1), strict=True)]

    assert [True, True] == [abs(step.at - at) <= 2 for step, at in zip(trend.steps(values), (60, 140), strict=True)]


def test_noise_has_no_step() -> None:
    assert [()] * 10 == [trend.steps(_noise(180, 0.01, seed)) for seed in range(10)]


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 7, [1.0] * 50])
def test_a_flat_or_short_series_has_no_step(values: list[float]) -> None:
    assert () == trend.steps(values)


def test_creep_is_seen_against_the_best() -> None:
    values = [10 + 0.04 * night / 120 for night in range(121)]

    found = trend.creep(values)

    assert found is not None
    assert (0, "best") == (found.at, found.than)
    assert 0.03 < found.size < 0.04


def test_a_flat_or_falling_series_does_not_creep() -> None:
    assert trend.creep([10.0] * 120) is None
    assert trend.creep([10 - 0.001 * night for night in range(120)]) is None
    assert trend.creep([10.0] * 20) is None
