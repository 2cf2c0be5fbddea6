"""Figures from made-up blocks: metrics with their units, both clocks, what can't be trusted."""

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kernelci.errors import Verdict
from kernelci.model import Metric, Unit
from kernelci.reference import Cost
from kernelci.workbench import figures
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Overhead, Time, Window
from kernelci.workbench.contest import Block
from kernelci.workbench.figures import Duel, checked_time, of_time

COST = Overhead(30_000.0, 29_000.0, 31_000.0, 1_000.0, 5_000.0, 400.0)
CALIBRATION = Calibration(4e12, COST, {"bfloat16": 8e14}, 5e12, {"bfloat16": 1e15}, 50_000_000)
WORK = Cost(flops=4e9, bytes=4e7)  # 10 µs at the copy's rate, 5 µs at the matmul's
CALLS, NS, HOST_NS = 1000, 20_000.0, 15_000.0


def _window(ns: float = NS, calls: int = CALLS, wall: float = 1.0, device: float = 1.0) -> Window:
    """A window of calls of `ns`, as each clock tells it by a factor; device 0: no events."""
    return Window(calls, COST.ns + calls * ns * wall, (COST.device_ns + calls * ns * device) if device else 0.0)


def _block(**windows: Sequence[Window]) -> Block:
    return Block({name.replace("_", ".").replace("prime", "'"): list(some) for name, some in windows.items()})


def _alone(**more: Sequence[Window]) -> list[Block]:
    return [_block(head=[_window(), _window()], **more) for _ in range(3)]


def _pairs(
    ratio: float = 1.0, blocks: int = 12, noise: float = 0.001, wall: float = 0.0, device: float = 1.0
) -> list[Block]:
    """Blocks in which head takes `ratio` times as long; `wall`: more noise of the referee's clock; `device`: what the
    candidates' events make of head's time."""
    draw = random.Random(1)

    def one(ns: float, told: float) -> list[Window]:
        return [_window(ns, wall=1 + wall * draw.uniform(-1, 1), device=told) for _ in range(2)]

    found = []
    for number in range(blocks):
        base, head, again = (NS * (1 + noise * draw.uniform(-1, 1)) for _ in range(3))
        sides = {"base": one(base, bool(device)), "head": one(ratio * head, device)}
        found.append(Block(sides | ({"base'": one(again, bool(device))} if number < 4 else {})))
    return found


def _by_tag(metrics: Sequence[Metric]) -> dict[str, Metric]:
    return {metric.tag: metric for metric in metrics}


def _raised(blocks: Sequence[Block], cost: Cost = WORK) -> Verdict:
    with pytest.raises(Verdict) as caught:
        checked_time(blocks, "head", CALIBRATION, cost, "bfloat16")
    return caught.value


def _of(head: Sequence[Window]) -> dict[str, Metric]:
    blocks = [Block({"head": list(head)})]
    found = checked_time(blocks, "head", CALIBRATION, WORK, "bfloat16")
    return _by_tag([*of_time(found, blocks, CALIBRATION, WORK, "bfloat16")])


def _figures(**more: Sequence[Window]) -> dict[str, Metric]:
    blocks = _alone(**more)
    found = checked_time(blocks, "head", CALIBRATION, WORK, "bfloat16")
    return _by_tag([*of_time(found, blocks, CALIBRATION, WORK, "bfloat16")])


def test_time_of_head_alone() -> None:
    time = _figures()["time"]
    assert (Unit.NANOSECONDS, NS, NS, NS) == (time.unit, time.value, time.low, time.high)


def test_the_time_is_also_the_referees_with_its_interval_and_in_cycles() -> None:
    clocked = [replace(_window(), sm_clock_hz=clock) for clock in (1.9e9, 2.0e9, 1.98e9)]
    found = _of(clocked)
    wall = found["time_wall"]
    assert (NS, Unit.NANOSECONDS) == (wall.value, wall.unit)
    assert wall.low is not None
    assert wall.high is not None
    assert wall.low < NS < wall.high
    assert pytest.approx(NS * 1.98) == found["sm_cycles"].value


def test_a_time_by_the_referees_clock_alone_is_said_once() -> None:
    found = _of([Window(CALLS, COST.ns + CALLS * NS, 0.0)])
    assert "time_wall" not in found
    assert "sm_cycles" not in found


def test_windows_of_blocks_that_do_not_count_are_left_out() -> None:
    blocks = [*_alone(), Block({"head": [_window(5 * NS)]}, dropped="thermal throttle")]
    assert [NS] * 6 == [COST.wall(window) for window in figures.windows(blocks, "head")]


@pytest.mark.parametrize(
    ("tag", "value", "unit"),
    [
        ("bandwidth", 4e7 / NS * 1e9, Unit.BYTES_PER_SECOND),
        ("flops", 4e9 / NS * 1e9, Unit.FLOP_PER_SECOND),
        ("of_ceiling", 10_000 / NS, Unit.FRACTION),
    ],
)
def test_rates(tag: str, value: float, unit: Unit) -> None:
    metric = _figures()[tag]
    assert (pytest.approx(value), unit) == (metric.value, metric.unit)


def test_no_rates_without_a_cost() -> None:
    nothing = Cost(0.0, None)
    blocks = _alone()
    found = checked_time(blocks, "head", CALIBRATION, nothing, "bfloat16")
    assert {"time", "time_wall"} == set(_by_tag([*of_time(found, blocks, CALIBRATION, nothing, "bfloat16")]))


def test_end_to_end_is_what_the_referee_waits_for() -> None:
    each = Window(32, 32 * (NS + HOST_NS), 32 * NS)
    found = _figures(head_each=[each])
    assert (NS + HOST_NS, Unit.NANOSECONDS) == (found["time_end_to_end"].value, found["time_end_to_end"].unit)


def test_host_share() -> None:
    share = _figures(head_each=[Window(32, 32 * (NS + HOST_NS), 0.0)])["host_share"]
    assert (pytest.approx(HOST_NS / (NS + HOST_NS)), Unit.FRACTION) == (share.value, share.unit)


def test_host_share_is_never_negative() -> None:
    assert 0.0 == _figures(head_each=[Window(32, 32 * NS / 2, 0.0)])["host_share"].value


def test_warm() -> None:
    warm = _figures(head_warm=[_window(NS / 2, calls=10)])["time_warm"]
    assert (pytest.approx(NS / 2), Unit.NANOSECONDS) == (warm.value, warm.unit)


@pytest.mark.parametrize("window", [_window(100.0, calls=2), _window(NS, calls=10, device=0.0)])
def test_no_warm_figure_where_events_can_not_tell(window: Window) -> None:
    assert "time_warm" not in _figures(head_warm=[window])


def test_blocks_that_were_not_quiet() -> None:
    blocks = [*_alone(), *(Block({"head": [_window()]}, noisy=True, dropped="noise") for _ in range(4))]
    assert "not-quiet" == _raised(blocks).reason


def test_half_of_the_blocks_may_be_noisy() -> None:
    blocks = [*_alone(), *(Block({"head": [_window()]}, noisy=True, dropped="noise") for _ in range(3))]
    assert NS == checked_time(blocks, "head", CALIBRATION, WORK, "bfloat16").ns


def test_no_block_counts() -> None:
    verdict = _raised([Block({"head": [_window()]}, dropped="thermal throttle")])
    assert ("not-measured", "no block of head counts: thermal throttle") == (verdict.reason, verdict.message)


def test_no_block() -> None:
    assert "not-measured" == _raised([]).reason


@pytest.mark.parametrize("kind", ["head_short", "head_solo"])
def test_a_kernel_that_is_slow_only_in_short_windows(kind: str) -> None:
    slowed = Window(1, COST.ns + NS + 5e7, 0.0)  # it sleeps 50 ms
    assert "short-windows" == _raised(_alone(**{kind: [slowed]})).reason


def test_short_windows_of_an_honest_kernel() -> None:
    blocks = _alone(head_short=[_window(calls=200)], head_solo=[_window(calls=1)])
    assert NS == checked_time(blocks, "head", CALIBRATION, WORK, "bfloat16").ns


def test_events_that_leave_work_out() -> None:
    assert "clocks-disagree" == _raised([_block(head=[_window(device=0.7)] * 2)] * 3).reason


def test_faster_than_its_bytes() -> None:
    assert "impossible-time" == _raised(_alone(), Cost(0.0, 2e8)).reason


def test_faster_than_its_arithmetic() -> None:
    assert "impossible-time" == _raised(_alone(), Cost(1e11, 0.0)).reason


@pytest.mark.parametrize(("ratio", "effect"), [(1.02, 0.02), (1.0, 0.0), (0.9, -0.1)])
def test_effect(ratio: float, effect: float) -> None:
    found = Duel(_pairs(ratio), COST).effect()
    assert (pytest.approx(effect, abs=0.002), True, 12) == (
        found.effect,
        found.low < effect < found.high,
        found.blocks,
    )


def test_the_effect_is_that_of_the_events_which_vary_less() -> None:
    duel = Duel(_pairs(1.02, wall=0.02), COST)
    found, device = duel.effect(), duel.device
    assert device is not None
    assert ((device.effect, device.low, device.high), True) == (
        (found.effect, found.low, found.high),
        found.high - found.low < duel.wall.high - duel.wall.low,
    )


def test_p_of_the_events_counts_where_the_referees_clock_shows_the_effect_too() -> None:
    duel = Duel(_pairs(1.05, wall=0.02), COST)
    assert duel.device is not None
    assert (True, duel.device.p) == (duel.device.p < duel.wall.p <= figures.CONFIRMED, duel.effect().p)


def test_p_of_the_referees_clock_counts_where_that_shows_nothing() -> None:
    duel = Duel(_pairs(1.004, wall=0.05), COST)
    assert duel.device is not None
    assert (True, duel.wall.p) == (duel.device.p < figures.CONFIRMED < duel.wall.p, duel.effect().p)


def test_without_events_the_referees_clock_decides() -> None:
    duel = Duel(_pairs(1.02, device=0.0), COST)
    assert (None, duel.wall) == (duel.device, duel.effect())


@pytest.mark.parametrize("device", [0.9, 1.1])
def test_events_that_show_another_effect(device: float) -> None:
    with pytest.raises(Verdict) as caught:
        Duel(_pairs(device=device), COST).effect()
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
        for block in _pairs(ratio)
    ]
    assert pytest.approx(ratio, rel=0.002) == 1 + Duel(blocks, probed).effect().effect


def test_events_that_lie_by_more_than_windows_may_cost() -> None:
    with pytest.raises(Verdict) as caught:
        Duel(_pairs(6.0, device=0.9), replace(COST, ns=30_000.0, low=22_500.0, high=37_500.0)).effect()
    assert "clocks-disagree" == caught.value.reason


def _disagreeing(device: float, blocks: int = 12) -> list[Block]:
    return [_block(base=[_window()], head=[_window(device=device)], baseprime=[_window()]) for _ in range(blocks)]


def test_clocks_that_disagree_in_one_contest_alone_do_so_by_chance() -> None:
    duel, again = Duel(_disagreeing(1.02), COST), _disagreeing(1.0, 8)
    found = duel.effect(again)
    assert (True, 1.0, 0.0) == (duel.by_chance(again), found.p, pytest.approx(found.effect, abs=1e-9))
    assert "delta" in _by_tag([*duel.metrics(again=again)])


@pytest.mark.parametrize("again", [_disagreeing(1.02, 8), _disagreeing(1.0, 2), []])
def test_clocks_that_disagree_again_or_were_not_asked(again: list[Block]) -> None:
    duel = Duel(_disagreeing(1.02), COST)
    assert not duel.by_chance(again)
    with pytest.raises(Verdict) as caught:
        duel.effect(again)
    assert "clocks-disagree" == caught.value.reason


def test_clocks_that_agree_need_no_chance() -> None:
    duel = Duel(_disagreeing(1.0), COST)
    assert not duel.by_chance(_disagreeing(1.0, 8))
    assert duel.effect(_disagreeing(1.02, 8)) == duel.effect()


def test_events_of_one_window_that_show_next_to_nothing() -> None:
    blocks = _pairs()
    first = blocks[3].windows["head"][0]
    blocks[3].windows["head"][0] = Window(first.calls, first.wall_ns, 1.0)
    with pytest.raises(Verdict) as caught:
        Duel(blocks, COST).effect()
    assert "clocks-disagree" == caught.value.reason


def test_windows_shorter_than_the_clocks_own_cost_are_no_evidence() -> None:
    blocks = [Block({side: [Window(2, COST.ns / 2, 0.0)] * 2 for side in ("base", "head", "base'")})] * 4
    assert 1.0 == Duel(blocks, COST).effect().p


def test_noise_is_that_of_base_against_base() -> None:
    quiet, loud = (Duel(_pairs(noise=noise), COST).noise() for noise in (0.001, 0.01))
    assert (True, True) == (0 < quiet < 0.002, 0.002 < loud < 0.02)


def test_no_noise_is_known_without_base_against_base() -> None:
    blocks = _pairs()
    for block in blocks:
        block.windows.pop("base'", None)
    assert 0.0 == Duel(blocks, COST).noise()


def test_metrics_of_a_duel() -> None:
    found = _by_tag([*Duel(_pairs(1.02), COST).metrics()])
    units = {"delta": Unit.FRACTION, "noise": Unit.FRACTION, "p": Unit.FRACTION, "blocks": Unit.COUNT}
    assert units == {tag: metric.unit for tag, metric in found.items()}


def test_delta_has_its_interval() -> None:
    delta = _by_tag([*Duel(_pairs(1.02), COST).metrics()])["delta"]
    assert delta.low < 0.02 < delta.high  # type: ignore[operator]


def test_a_duel_of_too_few_blocks_says_so() -> None:
    found = _by_tag([*Duel(_pairs(blocks=2), COST).metrics()])
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
    found = _by_tag([*Duel(_each(1.2), COST, end_to_end=True).metrics("_end_to_end")])
    assert {"delta_end_to_end", "noise_end_to_end", "p_end_to_end"} == set(found)


def test_blocks_that_do_not_count_are_not_compared() -> None:
    blocks = _pairs(1.5)
    for block in blocks[:8]:
        block.dropped = "thermal throttle"
    assert 4 == Duel(blocks, COST).effect().blocks


def _clocked(ratio: float, hz: float, seen: int = 12) -> list[Block]:
    """Blocks in which head takes `ratio` times as long at this SM clock, and base at 1.8 GHz; `seen` of 12 show it."""
    blocks = _pairs(ratio)
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
    assert (known, known) == (duel.cycles() is not None, "cycles" in _by_tag([*duel.metrics()]))


@pytest.mark.parametrize(("by", "known"), [(0.004, True), (0.04, False)])
def test_cycles_are_not_known_where_the_clock_behind_windows_was_another(by: float, known: bool) -> None:
    blocks = _clocked(1.02, 1.8e9)
    for number, block in enumerate(blocks):
        clock_hz = 1.8e9 * (1 + by * (-1) ** number)
        block.windows["head"] = [replace(one, sm_clock_hz=clock_hz) for one in block.windows["head"]]
    assert known == (Duel(blocks, COST).cycles() is not None)


def test_a_second_contest_is_told_with_its_interval_and_blocks() -> None:
    found = _by_tag([*Duel(_pairs(1.02), COST).metrics_again(_pairs(1.018, blocks=8))])
    again = found["again"]
    assert again.low < 0.018 < again.high  # type: ignore[operator]
    assert (pytest.approx(0.018, abs=0.001), 8) == (again.value, found["blocks_again"].value)


def test_no_second_contest_is_told_as_none() -> None:
    assert [] == [*Duel(_pairs(1.02), COST).metrics_again([])]


def test_time_metric() -> None:
    found = figures.time_metric("time_base", "base", Time(2.0, 1.0, 3.0, 2.0, 2.0, True), "of base's call")
    assert Metric("time_base", 2.0, Unit.NANOSECONDS, "base", "of base's call", 1.0, 3.0) == found
