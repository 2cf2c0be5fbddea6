"""Figures from made-up blocks: metrics with their units, both clocks, what can't be trusted."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.model import Metric, Unit
from kernelci.reference import Cost
from kernelci.workbench import figures
from kernelci.workbench.calibration import Calibration
from kernelci.workbench.clock import Time, Window
from kernelci.workbench.contest import Block
from kernelci.workbench.figures import checked_time, of_time

from .made_blocks import CALLS, COST, NS, by_tag, of_windows, window

CALIBRATION = Calibration(4e12, COST, {"bfloat16": 8e14}, 5e12, {"bfloat16": 1e15}, 50_000_000)
WORK = Cost(flops=4e9, bytes=4e7)  # 10 µs at the copy's rate, 5 µs at the matmul's
HOST_NS = 15_000.0


def _alone(**more: Sequence[Window]) -> list[Block]:
    return [of_windows(head=[window(), window()], **more) for _ in range(3)]


def _raised(blocks: Sequence[Block], cost: Cost = WORK) -> Stop:
    with pytest.raises(Stop) as caught:
        checked_time(blocks, "head", CALIBRATION, cost, "bfloat16")
    return caught.value


def _of(head: Sequence[Window]) -> dict[str, Metric]:
    blocks = [Block({"head": list(head)})]
    found = checked_time(blocks, "head", CALIBRATION, WORK, "bfloat16")
    return by_tag([*of_time(found, blocks, CALIBRATION, WORK, "bfloat16")])


def _figures(**more: Sequence[Window]) -> dict[str, Metric]:
    blocks = _alone(**more)
    found = checked_time(blocks, "head", CALIBRATION, WORK, "bfloat16")
    return by_tag([*of_time(found, blocks, CALIBRATION, WORK, "bfloat16")])


def test_time_of_head_alone() -> None:
    time = _figures()["time"]
    assert (Unit.NANOSECONDS, NS, NS, NS) == (time.unit, time.value, time.low, time.high)


def test_the_time_is_also_the_referees_with_its_interval_and_in_cycles() -> None:
    clocked = [replace(window(), sm_clock_hz=clock) for clock in (1.9e9, 2.0e9, 1.98e9)]
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
    blocks = [*_alone(), Block({"head": [window(5 * NS)]}, dropped="thermal throttle")]
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
    assert {"time", "time_wall"} == set(by_tag([*of_time(found, blocks, CALIBRATION, nothing, "bfloat16")]))


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
    warm = _figures(head_warm=[window(NS / 2, calls=10)])["time_warm"]
    assert (pytest.approx(NS / 2), Unit.NANOSECONDS) == (warm.value, warm.unit)


@pytest.mark.parametrize("window", [window(100.0, calls=2), window(NS, calls=10, device=0.0)])
def test_no_warm_figure_where_events_can_not_tell(window: Window) -> None:
    assert "time_warm" not in _figures(head_warm=[window])


def test_blocks_that_were_not_quiet() -> None:
    blocks = [*_alone(), *(Block({"head": [window()]}, noisy=True, dropped="noise") for _ in range(4))]
    assert "not-quiet" == _raised(blocks).reason


def test_half_of_the_blocks_may_be_noisy() -> None:
    blocks = [*_alone(), *(Block({"head": [window()]}, noisy=True, dropped="noise") for _ in range(3))]
    assert NS == checked_time(blocks, "head", CALIBRATION, WORK, "bfloat16").ns


def test_no_block_counts() -> None:
    stop = _raised([Block({"head": [window()]}, dropped="thermal throttle")])
    assert ("not-measured", "no block of head counts: thermal throttle") == (stop.reason, stop.message)


def test_no_block() -> None:
    assert "not-measured" == _raised([]).reason


@pytest.mark.parametrize("kind", ["head_short", "head_solo"])
def test_a_kernel_that_is_slow_only_in_short_windows(kind: str) -> None:
    slowed = Window(1, COST.ns + NS + 5e7, 0.0)  # it sleeps 50 ms
    assert "short-windows" == _raised(_alone(**{kind: [slowed]})).reason


def test_short_windows_of_an_honest_kernel() -> None:
    blocks = _alone(head_short=[window(calls=200)], head_solo=[window(calls=1)])
    assert NS == checked_time(blocks, "head", CALIBRATION, WORK, "bfloat16").ns


def test_events_that_leave_work_out() -> None:
    assert "clocks-disagree" == _raised([of_windows(head=[window(device=0.7)] * 2)] * 3).reason


def test_faster_than_its_bytes() -> None:
    assert "impossible-time" == _raised(_alone(), Cost(0.0, 2e8)).reason


def test_faster_than_its_arithmetic() -> None:
    assert "impossible-time" == _raised(_alone(), Cost(1e11, 0.0)).reason


def test_time_metric() -> None:
    found = figures.time_metric("time_base", "base", Time(2.0, 1.0, 3.0, 2.0, 2.0, True), "of base's call")
    assert Metric("time_base", 2.0, Unit.NANOSECONDS, "base", "of base's call", 1.0, 3.0) == found
