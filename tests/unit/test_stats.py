"""The statistics of times on made-up series (drift, outliers, steps, ties, two modes): what they find, how surely."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci import stats
from kernelci.model import Verdict

FLOOR = 0.005


def _noise(kind: str, shape: tuple[int, ...], sd: float, seed: int = 1) -> Any:
    """Log-ratios of blocks of which neither side is slower."""
    draw = np.random.default_rng(seed)
    plain = draw.normal(0, sd, shape)
    match kind:
        case "heavy tails":
            return draw.standard_t(3, shape) * sd / math.sqrt(3)
        case "outliers":
            return plain + (draw.random(shape) < 0.05) * draw.choice([-1, 1], shape) * draw.uniform(0.01, 0.1, shape)
        case "two modes":
            return plain / 3 + (draw.integers(0, 2, shape) - draw.integers(0, 2, shape)) * 1.4 * sd
        case "drift":
            return plain + np.linspace(-sd / 2, sd / 2, shape[-1])
        case _:
            return plain


KINDS = ("normal", "heavy tails", "outliers", "two modes", "drift")


def test_paired_is_the_logarithm_of_head_over_base() -> None:
    assert pytest.approx((math.log(2), 0.0)) == stats.paired([1.0, 3.0], [2.0, 3.0])


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_paired_takes_no_impossible_time(wrong: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        stats.paired([1.0], [wrong])


def test_paired_needs_pairs() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        stats.paired([1.0, 2.0], [1.0])


def test_effect_is_a_fraction_of_base() -> None:
    found = stats.effect([math.log(1.02)] * 12)
    assert (pytest.approx(0.02), pytest.approx(0.02), 12) == (found.effect, found.high, found.blocks)


def test_effect_turns_round_with_the_sides() -> None:
    ratios = _noise("normal", (12,), 0.004) + 0.01
    ahead, back = stats.effect(ratios), stats.effect(-ratios)
    assert pytest.approx(ahead.p) == back.p
    assert pytest.approx((1 + ahead.effect) * (1 + back.effect)) == 1
    assert pytest.approx((1 + ahead.low) * (1 + back.high)) == 1


@pytest.mark.parametrize("count", [0, 1, 2])
def test_two_blocks_say_nothing(count: int) -> None:
    found = stats.effect([0.5] * count)
    assert (-1.0, math.inf, 1.0) == (found.low, found.high, found.p)
    assert stats.decide(found, 0.0, FLOOR) is Verdict.UNKNOWN


def test_ties_at_nothing_are_no_effect() -> None:
    assert stats.Effect(0.0, 0.0, 0.0, 1.0, 12) == stats.effect([0.0] * 12)


@given(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=30), st.lists(st.floats(-0.5, 0.5), max_size=30))
def test_effect_lies_in_its_interval(ratios: list[float], aa: list[float]) -> None:
    found = stats.effect(ratios, aa=aa)
    assert found.low <= found.effect <= found.high
    assert 0 <= found.p <= 1


def test_blocks_that_agree_by_luck_are_as_unsure_as_their_control() -> None:
    """All twelve in one of two modes: alone they look certain."""
    alone, beside = (stats.effect([0.01] * 12, aa=aa) for aa in ((), [0.01, -0.01, 0.0, 0.0] * 3))
    assert alone.p < 1e-12 < 1e-4 < beside.p
    assert beside.low < alone.low


def test_drift_of_both_sides_cancels() -> None:
    drift = np.linspace(100.0, 200.0, 12)
    found = stats.effect(stats.paired(drift.tolist(), (drift * 1.01).tolist()))
    assert pytest.approx((0.01, 0.01, 0.01)) == (found.effect, found.low, found.high)


def test_a_step_of_both_sides_cancels_but_for_its_block() -> None:
    base = np.array([100.0] * 6 + [120.0] * 6)
    head = np.array([100.0] * 5 + [120.0] * 7)  # the clock fell between the sides of the sixth block
    found = stats.effect(stats.paired(base.tolist(), head.tolist()))
    assert pytest.approx(0.0) == found.effect


@pytest.mark.parametrize("outliers", [1, 2])
def test_outliers_on_one_side_move_nothing(outliers: int) -> None:
    ratios = _noise("normal", (12,), 0.003)
    with_them = ratios.copy()
    with_them[:outliers] = 0.3
    assert abs(stats.effect(with_them).effect - stats.effect(ratios).effect) < 0.002


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [4, 8, 12, 24])
def test_intervals_cover_what_they_promise(kind: str, blocks: int) -> None:
    _, low, high, _ = stats.effects(_noise(kind, (20_000, blocks), 0.004))
    assert 0.94 <= ((low <= 0) & (high >= 0)).mean()


@pytest.mark.parametrize("kind", KINDS)
def test_p_is_seldom_small_by_chance(kind: str) -> None:
    noise, aa = _noise(kind, (100_000, 12), 0.004), _noise(kind, (100_000, 12), 0.004, 2)
    *_, p = stats.effects(noise, aa=aa)
    assert (p < 0.001).mean() <= 0.001


def _prs(kind: str, sd: float, slower: float, prs: int, rows: int = 60) -> tuple[float, float, float]:
    """Whole pull requests of which one row is slower: share with a wrong verdict, share found, blocks of the others."""
    looks = stats.LOOKS
    noise = _noise(kind, (prs, rows, looks.budget), sd)
    aa = _noise(kind, (prs, rows, looks.budget), sd, 2)
    noise[:, 0] += math.log1p(slower)
    said = np.full((prs, rows), Verdict.UNKNOWN, dtype=object)
    p, used = np.ones((prs, rows)), np.full((prs, rows), looks.budget)
    for blocks in looks.at:
        found, low, high, now = stats.effects(noise[..., :blocks], aa=aa[..., :blocks])
        still = said == Verdict.UNKNOWN
        p = np.where(still, now, p)
        for pr in np.flatnonzero(still.any(axis=1)):
            q = stats.benjamini_hochberg(p[pr].tolist())
            for row in np.flatnonzero(still[pr]):
                one = stats.Effect(found[pr, row], low[pr, row], high[pr, row], p[pr, row], blocks)
                said[pr, row] = stats.decide(one, q[row], FLOOR)
        used = np.where((said != Verdict.UNKNOWN) & still, blocks, used)
    moved = (said == Verdict.SLOWER) | (said == Verdict.FASTER)
    return moved[:, 1:].any(axis=1).mean(), (said[:, 0] == Verdict.SLOWER).mean(), used[:, 1:].mean()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sd", [0.003, 0.004])
def test_whole_pull_requests(kind: str, sd: float) -> None:
    wrong, found, blocks = _prs(kind, sd, 0.01, 150)
    assert wrong == 0
    assert found >= 0.95
    assert blocks <= 14


@pytest.mark.parametrize("kind", KINDS)
def test_two_percent_are_found_through_the_worst_noise(kind: str) -> None:
    wrong, found, _ = _prs(kind, 0.005, 0.02, 150)
    assert (0, True) == (wrong, found >= 0.99)


def test_equivalence_needs_the_whole_interval() -> None:
    inside, across = stats.Effect(0.0, -0.004, 0.005, 1.0, 12), stats.Effect(0.0, -0.004, 0.006, 1.0, 12)
    assert (True, False) == (stats.equivalent(inside, FLOOR), stats.equivalent(across, FLOOR))


def test_benjamini_hochberg_of_a_known_example() -> None:
    assert pytest.approx((0.04, 0.04, 0.04, 0.04)) == stats.benjamini_hochberg((0.01, 0.02, 0.03, 0.04))
    assert pytest.approx((0.8, 0.004, 0.8)) == stats.benjamini_hochberg((0.6, 0.001, 0.5), 4)


@given(st.lists(st.floats(0, 1), max_size=60))
def test_q_is_between_p_and_bonferroni(p: list[float]) -> None:
    q = stats.benjamini_hochberg(p)
    assert all(one - 1e-12 <= two <= min(1.0, one * len(p)) + 1e-12 for one, two in zip(p, q, strict=True))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.lists(st.floats(0, 1), max_size=30))
def test_q_only_falls_when_rows_arrive(first: list[float], later: list[float]) -> None:
    total = len(first) + len(later)
    before = stats.benjamini_hochberg(first, total)
    after = stats.benjamini_hochberg([*first, *later])
    assert all(one <= two + 1e-12 for two, one in zip(before, after, strict=False))


@pytest.mark.parametrize(("blocks", "kind"), [(blocks, kind) for blocks in (12, 24) for kind in KINDS])
def test_most_of_the_noise_lies_below_its_floor(blocks: int, kind: str) -> None:
    floors = [stats.noise_floor(series) for series in _noise(kind, (400, blocks), 0.004)]
    others = np.abs(stats.effects(_noise(kind, (400, blocks), 0.004, 2))[0])
    assert 0.93 <= (others <= np.array(floors)).mean()


def test_a_bias_raises_the_noise_floor() -> None:
    assert 0.01 < stats.noise_floor(_noise("normal", (12,), 0.001) + 0.01) < 0.012


def test_a_longer_comparison_has_less_noise() -> None:
    series = _noise("normal", (12,), 0.004)
    assert stats.noise_floor(series, 48) < stats.noise_floor(series)


def test_no_series_no_floor() -> None:
    assert math.inf == stats.noise_floor([0.0, 0.0])


def _effect(middle: float, half: float, blocks: int = 12) -> stats.Effect:
    return stats.Effect(middle, middle - half, middle + half, 0.0, blocks)


@pytest.mark.parametrize(
    ("found", "q", "noise", "expected"),
    [
        (_effect(0.02, 0.004), 1e-5, 0.0, Verdict.SLOWER),
        (_effect(-0.02, 0.004), 1e-5, 0.0, Verdict.FASTER),
        (_effect(0.02, 0.004), 0.01, 0.0, Verdict.UNKNOWN),
        (_effect(0.02, 0.004, 8), 1e-9, 0.0, Verdict.UNKNOWN),
        (_effect(0.02, 0.03), 1e-5, 0.0, Verdict.UNKNOWN),
        (_effect(0.02, 0.004), 1e-5, 0.03, Verdict.UNKNOWN),
        (_effect(0.004, 0.002), 1e-9, 0.0, Verdict.UNKNOWN),
        (_effect(0.002, 0.001), 1e-9, 0.0, Verdict.SAME),
        (_effect(0.0, 0.004, 4), 1.0, 0.03, Verdict.SAME),
        (_effect(0.0, 0.01), 1.0, 0.03, Verdict.UNKNOWN),
    ],
)
def test_decide(found: stats.Effect, q: float, noise: float, expected: Verdict) -> None:
    assert expected is stats.decide(found, q, FLOOR, noise=noise)


def test_looks_spend_no_more_than_there_is() -> None:
    looks = stats.Looks((4, 12, 24), 12, 0.001)
    assert (0.0, 0.0005, 0.0005) == tuple(looks.limit(blocks) for blocks in looks.at)


@pytest.mark.parametrize(
    ("other", "verdict", "expected"),
    [
        (stats.Effect(0.02, 0.01, 0.03, 0.0, 8), Verdict.SLOWER, True),
        (stats.Effect(0.02, -0.01, 0.05, 0.0, 8), Verdict.SLOWER, False),
        (stats.Effect(0.004, 0.003, 0.005, 0.0, 8), Verdict.SLOWER, False),
        (stats.Effect(0.02, 0.01, 0.03, 0.0, 8), Verdict.FASTER, False),
        (stats.Effect(-0.02, -0.03, -0.01, 0.0, 8), Verdict.FASTER, True),
        (stats.Effect(-0.02, -0.03, -0.01, 0.0, 8), Verdict.SAME, False),
    ],
)
def test_what_another_measurement_shows(other: stats.Effect, verdict: Verdict, expected: bool) -> None:
    assert expected == stats.shows(other, verdict, FLOOR)


def test_cycles_that_show_nothing_ask_for_more_blocks() -> None:
    time, cycles = stats.Effect(0.02, 0.01, 0.03, 0.0, 12), stats.Effect(0.001, -0.001, 0.003, 0.5, 12)
    assert [Verdict.SLOWER, Verdict.SLOWER, Verdict.UNKNOWN] == [
        stats.decide(time, 0.0, FLOOR, cycles=each) for each in (None, time, cycles)
    ]


@pytest.mark.parametrize(
    ("found", "plain", "expected"),
    [
        (0.02, (0.02, 0.01, 0.03), Verdict.SLOWER),
        (0.02, (0.002, -0.02, 0.024), Verdict.SLOWER),  # its times say little, and that the same way
        (0.02, (-0.002, -0.02, 0.024), Verdict.UNKNOWN),
        (0.02, (0.002, -0.005, 0.009), Verdict.UNKNOWN),  # they say that it is not so much
        (-0.02, (0.01, -0.02, 0.04), Verdict.UNKNOWN),
        (0.0, (0.0, -0.01, 0.01), Verdict.SAME),
        (0.0, (0.004, 0.001, 0.007), Verdict.SAME),
        (0.0, (0.02, 0.01, 0.03), Verdict.UNKNOWN),  # more power for the same work
        (0.0, (-0.02, -0.03, -0.01), Verdict.UNKNOWN),
    ],
)
def test_times_as_they_were_must_not_say_otherwise(
    found: float, plain: tuple[float, float, float], expected: Verdict
) -> None:
    one = stats.Effect(found, found - 0.002, found + 0.002, 0.0, 12)
    assert expected is stats.decide(one, 0.0, FLOOR, plain=stats.Effect(*plain, 0.0, 12))


@pytest.mark.parametrize(
    ("values", "expected"), [((), 0.0), ((5.0,), 0.0), ((1.0, 2.0, 3.0), 1.4826), ((1.0, 2.0, 3.0, 4.0, 900.0), 1.4826)]
)
def test_spread_is_that_of_the_middle(values: tuple[float, ...], expected: float) -> None:
    assert pytest.approx(expected) == stats.spread(values)


def test_center_is_the_median_with_order_statistics() -> None:
    assert (5.5, 2, 9) == stats.center(range(1, 11))  # 2 and 9 of 10: the sign test's interval, 97.9 %


@pytest.mark.parametrize(("values", "expected"), [((3.0,), (3.0, 3.0, 3.0)), ((1.0, 5.0), (3.0, 1.0, 5.0))])
def test_center_of_few_is_all_of_them(values: tuple[float, ...], expected: tuple[float, ...]) -> None:
    assert expected == stats.center(values)


def test_nothing_has_no_center() -> None:
    with pytest.raises(ValueError, match="no values"):
        stats.center(())


def test_a_line_is_found_through_outliers() -> None:
    sizes = [float(size) for size in range(10, 20)]
    walls = [5.0 + 3.0 * size for size in sizes]
    walls[2], walls[7] = 500.0, 90.0
    found = stats.line(sizes, walls)
    assert pytest.approx((5.0, 3.0)) == (found.intercept, found.slope)


@pytest.mark.parametrize("count", [6, 10, 20])
def test_the_intervals_of_a_line_cover_what_they_promise(count: int) -> None:
    draw = np.random.default_rng(3)
    inside = []
    for _ in range(1000):
        sizes = draw.integers(50, 401, count)
        walls = 20 + 3.0 * sizes + draw.normal(0, 2, count)
        found = stats.line(sizes.tolist(), walls.tolist())
        inside.append((found.slope_low <= 3 <= found.slope_high, found.intercept_low <= 20 <= found.intercept_high))
    assert 0.93 <= np.mean(inside, axis=0).min()


def test_a_line_that_bends_shows_in_its_intercept() -> None:
    """Short windows slowed by 2 %, as a kernel that wants a small slope would do: the intercept is no overhead more."""
    sizes = [100.0, 120.0, 140.0, 160.0, 700.0, 750.0, 800.0, 900.0]
    walls = [20 + 3.0 * size * (1.02 if size < 400 else 1.0) for size in sizes]
    assert stats.line(sizes, walls).intercept_low > 20.5


def test_two_points_have_a_line_without_interval() -> None:
    found = stats.line([1.0, 2.0], [3.0, 5.0])
    assert (1.0, 2.0, -math.inf, math.inf) == (found.intercept, found.slope, found.slope_low, found.intercept_high)


@pytest.mark.parametrize(
    ("sizes", "walls"), [((2.0, 2.0), (1.0, 1.0)), ((1.0,), (1.0,)), ((1.0, 2.0, 3.0), (1.0, 2.0))]
)
def test_no_line(sizes: tuple[float, ...], walls: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="line needs"):
        stats.line(sizes, walls)


@pytest.mark.parametrize(
    ("cycles", "times", "told"),
    [
        (0.02, 0.0005, False),
        (0.003, 0.0005, True),  # no more than a reading of the clock varies by
        (0.02, 0.01, True),  # times vary too
    ],
)
def test_cycles_that_vary_far_more_than_times_tell_of_another_clock(cycles: float, times: float, told: bool) -> None:
    draw = np.random.default_rng(7)
    found = stats.in_windows(*(draw.normal(0.0, spread, (50, 12)) for spread in (cycles, times)))
    assert (told, (50,)) == (bool(np.median(found)), found.shape)
