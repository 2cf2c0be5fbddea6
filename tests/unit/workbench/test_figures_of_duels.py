"""Base against head over made-up blocks: effects by both clocks, in cycles and end to end; what can't be trusted."""

import random

import pytest
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.model import Unit
from kernelci.workbench import figures
from kernelci.workbench.clock import Window
from kernelci.workbench.contest import Block
from kernelci.workbench.figures import Duel

from .made_blocks import COST, by_tag, of_windows, pairs, window


@pytest.mark.parametrize(("ratio", "effect"), [(1.02, 0.02), (1.0, 0.0), (0.9, -0.1)])
def test_effect(ratio: float, effect: float) -> None:
    found = Duel(pairs(ratio), COST).effect()
    assert (pytest.approx(effect, abs=0.002), True, 12) == (
        found.effect,
        found.low < effect < found.high,
        found.blocks,
    )


def test_the_effect_is_that_of_the_events_which_vary_less() -> None:
    duel = Duel(pairs(1.02, wall=0.02), COST)
    found, device = duel.effect(), duel.device
    assert device is not None
    assert ((device.effect, device.low, device.high), True) == (
        (found.effect, found.low, found.high),
        found.high - found.low < duel.wall.high - duel.wall.low,
    )


def test_p_of_the_events_counts_where_the_referees_clock_shows_the_effect_too() -> None:
    duel = Duel(pairs(1.05, wall=0.02), COST)
    assert duel.device is not None
    assert (True, duel.device.p) == (duel.device.p < duel.wall.p <= figures.CONFIRMED, duel.effect().p)


def test_p_of_the_referees_clock_counts_where_that_shows_nothing() -> None:
    duel = Duel(pairs(1.004, wall=0.05), COST)
    assert duel.device is not None
    assert (True, duel.wall.p) == (duel.device.p < figures.CONFIRMED < duel.wall.p, duel.effect().p)


def test_without_events_the_referees_clock_decides() -> None:
    duel = Duel(pairs(1.02, device=0.0), COST)
    assert (None, duel.wall) == (duel.device, duel.effect())


@pytest.mark.parametrize("device", [0.9, 1.1])
def test_events_that_show_another_effect(device: float) -> None:
    with pytest.raises(Stop) as caught:
        Duel(pairs(device=device), COST).effect()
    assert "clocks-disagree" == caught.value.reason


@pytest.mark.parametrize(("ratio", "known"), [(6.0, (450_000.0, 750_000.0)), (1.05, (590_000.0, 610_000.0))])
def test_windows_that_cost_less_than_the_probes_are_no_lie(ratio: float, known: tuple[float, float]) -> None:
    probed = replace(COST, ns=600_000.0, low=known[0], high=known[1])
    blocks = [
        Block(
            {
                side: [replace(one, wall_ns=one.wall_ns + 470_000.0) for one in some]
                for side, some in block.windows.items()
            }
        )
        for block in pairs(ratio)
    ]
    assert pytest.approx(ratio, rel=0.002) == 1 + Duel(blocks, probed).effect().effect


def test_events_that_lie_by_more_than_windows_may_cost() -> None:
    with pytest.raises(Stop) as caught:
        Duel(pairs(6.0, device=0.9), replace(COST, ns=30_000.0, low=22_500.0, high=37_500.0)).effect()
    assert "clocks-disagree" == caught.value.reason


def _disagreeing(device: float, blocks: int = 12) -> list[Block]:
    return [of_windows(base=[window()], head=[window(device=device)], baseprime=[window()]) for _ in range(blocks)]


def test_clocks_that_disagree_in_one_contest_alone_do_so_by_chance() -> None:
    duel, again = Duel(_disagreeing(1.02), COST), _disagreeing(1.0, 8)
    found = duel.effect(again)
    assert (True, 1.0, 0.0) == (duel.by_chance(again), found.p, pytest.approx(found.effect, abs=1e-9))
    assert "delta" in by_tag([*duel.metrics(again=again)])


@pytest.mark.parametrize("again", [_disagreeing(1.02, 8), _disagreeing(1.0, 2), []])
def test_clocks_that_disagree_again_or_were_not_asked(again: list[Block]) -> None:
    duel = Duel(_disagreeing(1.02), COST)
    assert not duel.by_chance(again)
    with pytest.raises(Stop) as caught:
        duel.effect(again)
    assert "clocks-disagree" == caught.value.reason


def test_clocks_that_agree_need_no_chance() -> None:
    duel = Duel(_disagreeing(1.0), COST)
    assert not duel.by_chance(_disagreeing(1.0, 8))
    assert duel.effect(_disagreeing(1.02, 8)) == duel.effect()


def test_events_of_one_window_that_show_next_to_nothing() -> None:
    blocks = pairs()
    first = blocks[3].windows["head"][0]
    blocks[3].windows["head"][0] = Window(first.calls, first.wall_ns, 1.0)
    with pytest.raises(Stop) as caught:
        Duel(blocks, COST).effect()
    assert "clocks-disagree" == caught.value.reason


def test_windows_shorter_than_the_clocks_own_cost_are_no_evidence() -> None:
    blocks = [Block({side: [Window(2, COST.ns / 2, 0.0)] * 2 for side in ("base", "head", "base'")})] * 4
    assert 1.0 == Duel(blocks, COST).effect().p


def test_noise_is_that_of_base_against_base() -> None:
    quiet, loud = (Duel(pairs(noise=noise), COST).noise() for noise in (0.001, 0.01))
    assert (True, True) == (0 < quiet < 0.002, 0.002 < loud < 0.02)


def test_no_noise_is_known_without_base_against_base() -> None:
    blocks = pairs()
    for block in blocks:
        block.windows.pop("base'", None)
    assert 0.0 == Duel(blocks, COST).noise()


def test_metrics_of_a_duel() -> None:
    found = by_tag([*Duel(pairs(1.02), COST).metrics()])
    units = {"delta": Unit.FRACTION, "noise": Unit.FRACTION, "p": Unit.FRACTION, "blocks": Unit.COUNT}
    assert units == {tag: metric.unit for tag, metric in found.items()}


def test_delta_has_its_interval() -> None:
    delta = by_tag([*Duel(pairs(1.02), COST).metrics()])["delta"]
    assert delta.low < 0.02 < delta.high  # type: ignore[operator]


def test_a_duel_of_too_few_blocks_says_so() -> None:
    found = by_tag([*Duel(pairs(blocks=2), COST).metrics()])
    assert (-1.0, "inf", 1.0, 2) == (
        found["delta"].low,
        found["delta"].high,
        found["p"].value,
        found["blocks"].value,
    )


def _each(ratio: float) -> list[Block]:
    draw = random.Random(2)
    return [
        Block(
            {
                "base.each": [Window(32, 32 * 35_000 * draw.uniform(0.99, 1.01) + COST.ns, 1.0)],
                "head.each": [Window(32, 32 * 35_000 * ratio * draw.uniform(0.99, 1.01) + COST.ns, 1.0)],
            }
        )
        for _ in range(12)
    ]


def test_end_to_end_is_compared_by_the_referees_clock_alone() -> None:
    duel = Duel(_each(1.2), COST, end_to_end=True)
    assert (None, pytest.approx(0.2, abs=0.01)) == (duel.device, duel.effect().effect)


def test_metrics_of_a_duel_end_to_end() -> None:
    found = by_tag([*Duel(_each(1.2), COST, end_to_end=True).metrics("_end_to_end")])
    assert {"delta_end_to_end", "noise_end_to_end", "p_end_to_end"} == set(found)


def test_blocks_that_do_not_count_are_not_compared() -> None:
    blocks = pairs(1.5)
    for block in blocks[:8]:
        block.dropped = "thermal throttle"
    assert 4 == Duel(blocks, COST).effect().blocks


def _clocked(ratio: float, hz: float, seen: int = 12) -> list[Block]:
    """Blocks in which head takes `ratio` times as long at this SM clock, and base at 1.8 GHz; `seen` of 12 show it."""
    blocks = pairs(ratio)
    for block in blocks[:seen]:
        for side, clock in (("base", 1.8e9), ("head", hz)):
            block.windows[side] = [replace(one, sm_clock_hz=clock) for one in block.windows[side]]
    return blocks


@pytest.mark.parametrize(
    ("ratio", "hz", "expected"),
    [(1.02, 1.8e9, 0.02), (1.02, 1.8e9 / 1.02, 0.0), (1.0, 1.9e9, 0.0556)],
    ids=["more work", "a lower clock", "a higher clock hides it"],
)
def test_cycles_tell_work_from_clocks(ratio: float, hz: float, expected: float) -> None:
    found = Duel(_clocked(ratio, hz), COST).cycles()
    assert found is not None
    assert pytest.approx(expected, abs=0.002) == found.effect


@pytest.mark.parametrize(("seen", "known"), [(12, True), (6, True), (5, False), (0, False)])
def test_cycles_are_known_where_half_of_the_blocks_show_the_clock(seen: int, known: bool) -> None:
    duel = Duel(_clocked(1.02, 1.8e9, seen), COST)
    assert (known, known) == (duel.cycles() is not None, "cycles" in by_tag([*duel.metrics()]))


@pytest.mark.parametrize(("by", "known"), [(0.004, True), (0.04, False)])
def test_cycles_are_not_known_where_the_clock_behind_windows_was_another(by: float, known: bool) -> None:
    blocks = _clocked(1.02, 1.8e9)
    for number, block in enumerate(blocks):
        clock_hz = 1.8e9 * (1 + by * (-1) ** number)
        block.windows["head"] = [replace(one, sm_clock_hz=clock_hz) for one in block.windows["head"]]
    assert known == (Duel(blocks, COST).cycles() is not None)


def test_a_second_contest_is_told_with_its_interval_and_blocks() -> None:
    found = by_tag([*Duel(pairs(1.02), COST).metrics_again(pairs(1.018, blocks=8))])
    again = found["again"]
    assert again.low < 0.018 < again.high  # type: ignore[operator]
    assert (pytest.approx(0.018, abs=0.001), 8) == (again.value, found["blocks_again"].value)


def test_no_second_contest_is_told_as_none() -> None:
    assert [] == [*Duel(pairs(1.02), COST).metrics_again([])]
