"""Times that follow the SM clock, made up as a GPU at its power limit shows them: what taking that out finds, and how
surely."""

from typing import Any

import numpy as np
import pytest

from kernelci import stats


def _at_the_power_limit(draw: Any, shape: tuple[int, ...], follows: float, effect: float = 0.0) -> tuple[Any, Any]:
    """Log-ratios of times and of clocks as NVML shows them: by steps of 15 MHz, of the faster of two windows a side."""

    def side(moved: float) -> tuple[Any, Any]:
        clocks = draw.normal(0, 0.02, (*shape, 2))
        times = moved + follows * clocks + draw.normal(0, 0.001, clocks.shape)
        read = np.log(np.round(1755 * np.exp(clocks) / 15))
        best = times.argmin(axis=-1)[..., None]
        return tuple(np.take_along_axis(each, best, -1)[..., 0] for each in (times, read))

    (base, before), (head, after) = side(0.0), side(effect)
    return head - base, after - before


@pytest.mark.parametrize("follows", [-0.95, -0.5])
def test_times_that_follow_the_clock(follows: float) -> None:
    draw = np.random.default_rng(11)
    times, clocks = _at_the_power_limit(draw, (400, 24), follows)
    aa, beside = _at_the_power_limit(draw, (400, 12), follows)
    slopes = stats.following(times, clocks, aa, beside)
    found = slopes[slopes != 0]
    assert len(found) > 0.95 * len(slopes)
    assert (True, follows) == (found.std() < 0.05, pytest.approx(found.mean(), abs=0.12))


@pytest.mark.parametrize("blocks", [8, 12, 24])
def test_times_that_have_nothing_to_do_with_the_clock(blocks: int) -> None:
    draw = np.random.default_rng(12)
    times, clocks, aa, beside = draw.normal(0, 0.01, (4, 2000, blocks))
    assert (stats.following(times, clocks, aa[:, :12], beside[:, :12]) != 0).mean() < 0.003


def test_a_head_that_changes_its_own_clock_says_nothing_of_base() -> None:
    """It draws power for nothing in some windows; the base waits for memory, and has its time whatever the clock."""
    draw = np.random.default_rng(16)
    clocks = draw.normal(-0.05, 0.03, (300, 24))
    times = -0.8 * (clocks + 0.05) + draw.normal(0, 0.001, clocks.shape)
    aa, beside = draw.normal(0, 0.001, (300, 12)), draw.normal(0, 0.005, (300, 12))
    assert (stats.following(times, clocks, aa, beside) != 0).mean() < 0.01


def test_of_a_clock_that_is_not_known_nothing_follows() -> None:
    draw = np.random.default_rng(13)
    times, clocks = _at_the_power_limit(draw, (12,), -0.9)
    unknown = np.where(np.arange(12) == 3, np.nan, clocks)
    assert [True, False, False, False] == [
        bool(stats.following(times, seen, times[:count], seen[:count]))
        for seen, count in ((clocks, 12), (unknown, 12), (clocks, 2), (0 * clocks, 12))
    ]


@pytest.mark.parametrize(("effect", "least", "most"), [(0.01, 0.95, 0.1), (0.02, 0.99, 0.6)])
def test_what_is_found_at_the_power_limit(effect: float, least: float, most: float) -> None:
    """`most`: of times as they were."""
    draw = np.random.default_rng(14)
    times, clocks = _at_the_power_limit(draw, (300, 24), -0.9, effect)
    aa, beside = _at_the_power_limit(draw, (300, 12), -0.9)
    slope = stats.following(times, clocks, aa, beside)[:, None]
    steady = stats.effects(times - slope * clocks, aa=aa - slope * beside)
    found = [(p <= stats.LOOKS.limit(24)).mean() for p in (steady[3], stats.effects(times, aa=aa)[3])]
    assert found[0] >= least
    assert found[1] <= most


def test_taking_the_clock_out_makes_no_false_alarms() -> None:
    draw = np.random.default_rng(15)
    times, clocks = _at_the_power_limit(draw, (20_000, 12), -0.9)
    aa, beside = _at_the_power_limit(draw, (20_000, 12), -0.9)
    slope = stats.following(times, clocks, aa, beside)[:, None]
    p = stats.effects(times - slope * clocks, aa=aa - slope * beside)[3]
    assert (p <= 0.05).mean() < 0.06
    assert (p <= 0.001).mean() < 0.002
