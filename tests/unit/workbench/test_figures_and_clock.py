"""Duels at the power limit, where times follow the SM clock: what is left out, and what no kernel gains by it."""

import random

import pytest
from msgspec.structs import replace

from kernelci import stats
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Block, log_ratios
from kernelci.workbench.figures import Duel

COST = Overhead(30_000.0, 29_000.0, 31_000.0, 1_000.0, 5_000.0, 400.0)
CALLS, NS = 1000, 20_000.0


def _window(ns: float) -> Window:
    return Window(CALLS, COST.ns + CALLS * ns, COST.device_ns + CALLS * ns)


def _at_the_power_limit(ratio: float, blocks: int = 12, hz: float = 1e9, moved: float = 1.0) -> list[Block]:
    """Windows that take as long as the SM clock lets them; head's clock is lower by `moved`."""
    draw, found = random.Random(3), []
    for _ in range(blocks):
        windows = {}
        for side in ("base", "head", "base'"):
            clock = draw.uniform(0.95, 1.05) * (moved if side == "head" else 1.0)
            made = _window(NS * (ratio if side == "head" else 1.0) * draw.uniform(0.999, 1.001) / clock)
            windows[side] = [replace(made, sm_clock_hz=hz * clock)]
        found.append(Block(windows))
    return found


@pytest.mark.parametrize("ratio", [1.0, 1.02, 0.98])
def test_what_follows_the_clock_is_left_out(ratio: float) -> None:
    steady, as_it_was = (Duel(_at_the_power_limit(ratio, hz=hz), COST) for hz in (1e9, 0.0))
    found, plain, raw = steady.effect(), steady.plain(), as_it_was.effect()
    assert ratio - 1 == pytest.approx(found.effect, abs=1e-3)
    assert found.high - found.low < 0.1 * (raw.high - raw.low)
    assert plain is not None
    assert (raw.effect, raw.low, raw.high) == (plain.effect, plain.low, plain.high)
    assert (None, True) == (as_it_was.plain(), steady.noise() < 0.1 * as_it_was.noise())


def test_metrics_tell_what_was_left_out() -> None:
    found = {metric.tag: metric for metric in Duel(_at_the_power_limit(1.02), COST).metrics()}
    assert 1.0 == pytest.approx(found["follows_clock"].value, abs=0.05)
    assert float(found["plain"].high or 0) - float(found["plain"].low or 0) > 0.02


def test_the_second_contest_is_free_of_the_clock_too() -> None:
    duel = Duel(_at_the_power_limit(1.02), COST)
    again = duel.again(_at_the_power_limit(1.01, 8))
    assert (0.01, 8) == (pytest.approx(again.effect, abs=1e-3), again.blocks)
    assert again.low > 0.008


def test_a_second_contest_without_clocks_is_as_it_was() -> None:
    duel, blocks = Duel(_at_the_power_limit(1.02), COST), _at_the_power_limit(1.02, 8, hz=0.0)
    plain = stats.effect(log_ratios(blocks, "base", "head", COST.device))
    assert plain.effect == pytest.approx(duel.again(blocks).effect)


def test_more_power_for_the_same_work_is_not_the_same() -> None:
    duel = Duel(_at_the_power_limit(1.0, 24, moved=0.9), COST)
    found = duel.effect()
    assert ["UNKNOWN", "SAME"] == [stats.decide(found, 1.0, 0.005, plain=plain).name for plain in (duel.plain(), None)]
