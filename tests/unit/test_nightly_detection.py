"""The made-up year: small ones, played through."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def bench(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("nightly_detection")


def test_a_year_is_the_same_for_the_same_seed(bench: ModuleType) -> None:
    one, same, other = (bench.simulate(seed, rows=8) for seed in (1, 1, 2))

    assert np.array_equal(one.values, same.values, equal_nan=True)
    assert not np.array_equal(one.values, other.values, equal_nan=True)


def test_a_years_noise_is_what_it_says(bench: ModuleType) -> None:
    gpu = bench.simulate(3, rows=80, calm=True)
    alive = ~np.isnan(gpu.values[0])
    nights = np.diff((gpu.values - gpu.committed)[:, alive], axis=1) / np.sqrt(2)
    spread = 1.4826 * np.median(np.abs(nights), axis=1)[~gpu.modes]

    assert 0.004 < np.median(spread[~gpu.noisy[~gpu.modes]]) < 0.006
    assert 0.013 < np.median(spread[gpu.noisy[~gpu.modes]]) < 0.017
    assert 0.01 < 1 - alive.mean() < 0.06


def test_a_step_of_five_percent_is_one_issue(bench: ModuleType) -> None:
    tally = bench.Tally({size: [] for size in bench.SIZES}, [])
    gpu = bench.simulate(4, nights=120, rows=8, calm=True)
    gpu.values -= gpu.committed
    gpu.truths = [[] for _ in gpu.truths]
    gpu.truths[0] = [bench.Truth(60, 0.05)]
    gpu.committed = np.array([bench.levels(each, 120) for each in gpu.truths])
    gpu.values += gpu.committed

    bench.year(gpu, 9, tally)

    assert (0, 0) == (tally.false, tally.doubled)
    assert gpu.truths[0][0].issue in range(60, 65)


def test_creep_takes_its_time(bench: ModuleType) -> None:
    found = bench.levels([bench.Truth(10, 0.04, 120)], 200)

    assert (0.0, pytest.approx(np.log(1.04))) == (found[9], found[130])
    assert 0 < found[60] < found[100]


def test_the_goal_is_checked(bench: ModuleType) -> None:
    tally = bench.Tally({size: [1] for size in bench.SIZES}, [50], row_nights=10_000)

    assert bench.good(tally)
    tally.false = 2
    assert not bench.good(tally)
    tally.false, tally.found[0.03] = 0, [1, -1]
    assert not bench.good(tally)


def test_recorded_rows_decide_a_step_where_they_are_quiet_and_never_make_one_up(bench: ModuleType) -> None:
    noise = bench.recorded()
    gpu = bench.simulate(3, rows=12, calm=True)
    draw = np.random.default_rng(5)

    step, none = (
        [bench.paired(draw, gpu, row, size, 0.05, noise.pairs) for row in range(12)] for size in (np.log1p(0.05), 0.0)
    )

    quiet = [row for row, ratios in enumerate(noise.pairs) if np.std(ratios) < 0.002]
    assert quiet
    assert {"SLOWER"} == {step[row] for row in quiet}
    assert "SLOWER" not in none


def test_nights_can_vary_as_recorded_blocks_do(bench: ModuleType) -> None:
    still = [np.zeros(4)]

    gpu = bench.simulate(3, rows=8, calm=True, blocks=still)

    nights = np.diff((gpu.values - gpu.committed)[~gpu.modes][:, ~np.isnan(gpu.values[0])], axis=1)
    assert np.median(np.abs(nights)) < 0.002  # the drift alone
