"""The clock on made-up windows: its overhead, a time by one clock or both, short windows, what is impossible."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.workbench.clock import (
    Overhead,
    Window,
    check_line,
    check_possible,
    off_line,
    overhead,
    probed_overhead,
    time_of,
)

COST = Overhead(30_000.0, 29_000.0, 31_000.0, 1_000.0, 5_000.0, 400.0)
CALLS = 1000
CALL_NS = 20_000.0


def _window(ns: float = CALL_NS, calls: int = CALLS, device: float | None = None, extra: float = 0.0) -> Window:
    """An honest window, or one whose events say `device` a call."""
    told = ns if device is None else device
    return Window(calls, COST.ns + calls * ns + extra, COST.device_ns + calls * told if told else 0.0)


def _raised(windows: Sequence[Window]) -> Stop:
    with pytest.raises(Stop) as caught:
        time_of(windows, COST)
    return caught.value


def _probed(sizes: Sequence[int] = (128, 256, 512, 1024), rounds: int = 4) -> list[Window]:
    return [Window(size, 30_000.0 + 1_000.0 * size, 5_000.0 + 900.0 * size) for size in sizes for _ in range(rounds)]


def test_overhead_is_the_intercept_of_both_clocks() -> None:
    found = overhead(_probed())
    expected = (30_000.0, 1_000.0, 5_000.0)
    assert pytest.approx(expected) == (found.ns, found.call_ns, found.device_ns)


def test_overhead_of_a_line_without_noise_is_exact() -> None:
    found = overhead(_probed())
    assert (pytest.approx(30_000.0), pytest.approx(30_000.0), 0.0) == (found.low, found.high, found.spread)


def test_overhead_survives_windows_that_something_disturbed() -> None:
    disturbed = [Window(window.calls, window.wall_ns + 5e6, window.device_ns) for window in _probed(rounds=1)]
    assert pytest.approx(30_000.0, rel=0.01) == overhead([*_probed(), *disturbed]).ns


def test_overhead_is_not_negative() -> None:
    assert 0.0 == overhead([Window(size, 1_000.0 * size - 500.0, 0.0) for size in (128, 256, 512)]).ns


def test_both_clocks_per_call() -> None:
    assert (CALL_NS, 19_000.0) == (COST.wall(_window()), COST.device(_window(device=19_000.0)))


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 4096))
def test_no_time_of_a_call_is_negative(wall: float, device: float, calls: int) -> None:
    window = Window(calls, wall, device)
    assert (True, True) == (COST.wall(window) >= 0, COST.device(window) >= 0)


def test_events_that_agree_give_the_interval() -> None:
    found = time_of([_window(), _window(extra=2e5), _window(extra=1e5)], COST)
    assert (CALL_NS, CALL_NS, CALL_NS, True) == (found.ns, found.low, found.high, found.narrowed)


def test_the_time_of_the_referees_clock_is_kept_beside() -> None:
    found = time_of([_window(extra=1e5)], COST)
    assert (CALL_NS + 100, CALL_NS) == (found.wall_ns, found.device_ns)


def test_events_within_half_a_percent_agree() -> None:
    assert time_of([_window(device=1.004 * CALL_NS)], COST).narrowed


@pytest.mark.parametrize("share", [0.5, 0.98, 1.02, 2.0])
def test_events_that_say_another_time(share: float) -> None:
    assert "clocks-disagree" == _raised([_window(device=share * CALL_NS)]).reason


def test_the_message_names_both_times() -> None:
    said = _raised([_window(device=CALL_NS / 2)]).message
    assert (True, True) == ("20 µs a call" in said, "10 µs by the candidate's events" in said)


def test_events_within_a_wide_interval_of_the_referees_clock_agree() -> None:
    walls = [_window(extra=share * CALLS * CALL_NS, device=1.02 * CALL_NS) for share in (0.0, 0.01, 0.05)]
    assert pytest.approx(1.02 * CALL_NS) == time_of(walls, COST).ns


def test_the_overheads_own_uncertainty_widens_the_interval() -> None:
    window = _window(ns=300.0, calls=2, device=0.0)
    found = time_of([window], COST)
    assert (300.0, 0.0, 800.0) == (found.ns, found.low, found.high)


def test_without_events_the_referees_clock_alone_counts() -> None:
    found = time_of([_window(device=0.0)] * 3, COST)
    assert (CALL_NS, False) == (found.ns, found.narrowed)


@pytest.mark.parametrize("claim", [1.0, COST.device_ns])
def test_events_that_show_next_to_nothing(claim: float) -> None:
    assert "clocks-disagree" == _raised([Window(CALLS, _window().wall_ns, claim)] * 3).reason


def _line(short: Sequence[Window]) -> None:
    check_line([_window(extra=extra) for extra in (-1e4, 0.0, 1e4)], short, COST)


def test_honest_windows_lie_on_a_line() -> None:
    _line([_window(calls=calls) for calls in (1, 130, 400)])


@pytest.mark.parametrize(
    "short",
    [
        _window(calls=100, ns=1.2 * CALL_NS),
        _window(calls=100, ns=0.5 * CALL_NS),
        _window(calls=1, extra=1e6),
        _window(calls=500, ns=1.05 * CALL_NS),
    ],
)
def test_short_windows_that_do_not_fit(short: Window) -> None:
    with pytest.raises(Stop) as caught:
        _line([_window(calls=100), short])
    assert ("short-windows", True) == (caught.value.reason, f"of {short.calls} calls took" in caught.value.message)


def test_short_windows_may_run_at_a_higher_clock() -> None:
    _line([_window(calls=250, ns=0.85 * CALL_NS)])


def test_what_a_window_may_lie_off() -> None:
    _line([_window(calls=1, extra=1e5), _window(calls=300, extra=-1e5)])


def test_a_tight_line_allows_for_nothing_that_it_is_unsure_by() -> None:
    full, short = [_window(extra=extra) for extra in (-1e5, 1e5)], [_window(calls=300, extra=5e5)]
    wide = replace(COST, high=COST.ns + 1e7)
    assert ([], short) == ([*off_line(full, short, wide)], [one for one, _ in off_line(full, short, wide, tight=True)])


@pytest.mark.parametrize(("full", "short"), [([], [_window()]), ([_window()], [])])
def test_one_kind_of_window_makes_no_line(full: list[Window], short: list[Window]) -> None:
    check_line(full, short, COST)


@pytest.mark.parametrize(("ns", "floor"), [(20_000.0, 20_001.0), (0.0, 0.0), (math.inf, 0.0), (math.nan, 0.0)])
def test_an_impossible_time(ns: float, floor: float) -> None:
    found = time_of([_window()], COST)
    with pytest.raises(Stop) as caught:
        check_possible(type(found)(ns, ns, ns, ns, 0.0, False, 0.0), floor)
    assert "impossible-time" == caught.value.reason


def test_a_possible_time() -> None:
    check_possible(time_of([_window()], COST), 20_000.0)


@given(st.floats(100.0, 1e7), st.integers(2, 4096), st.floats(0.6, 1.6))
def test_events_never_move_a_time_out_of_the_referees_reach(ns: float, calls: int, share: float) -> None:
    windows = [_window(ns, calls, device=share * ns)] * 3
    try:
        found = time_of(windows, COST)
    except Stop:
        return
    room = (COST.high - COST.low) / 2 / calls + 0.0051 * ns
    assert abs(found.ns - ns) <= room


def _probe(gap: float, device: float = 20e6) -> Window:
    return Window(1, device + gap, device and device + COST.device_ns)


@pytest.mark.parametrize(
    ("step", "low", "high"),
    [
        (100.0, 0.75 * 505_100, 1.25 * 505_100),  # what another kernel's windows may cost, where the probe's agree
        (200_000.0, 505_000, 905_000),  # and no less than those themselves say
    ],
)
def test_the_probe_tells_what_a_window_costs_beside_the_kernel(step: float, low: float, high: float) -> None:
    found = probed_overhead([_probe(500_000.0 + COST.device_ns + number * step) for number in range(3)], COST)
    expected = [505_000 + step, low, high, step]
    assert pytest.approx(expected) == [found.ns, found.low, found.high, found.spread]


def test_by_the_probes_overhead_both_clocks_say_the_same() -> None:
    found = probed_overhead([_probe(500_000.0)] * 3, COST)
    window = Window(1000, 20e6 + 500_000.0, 20e6 + COST.device_ns)
    assert pytest.approx(found.device(window)) == found.wall(window)


@pytest.mark.parametrize("probed", [[], [_probe(5e5)] * 2, _probed(sizes=(128, 256))])
def test_too_few_windows_of_the_probe_leave_the_calibration(probed: list[Window]) -> None:
    assert COST == probed_overhead(
        [Window(one.calls, one.wall_ns, one.device_ns if one.calls == 1 else 0.0) for one in probed], COST
    )


def test_without_events_the_probe_makes_a_line() -> None:
    probed = [Window(one.calls, one.wall_ns, 0.0) for one in _probed()]
    found = probed_overhead(probed, COST)
    assert pytest.approx((30_000.0, 1_000.0)) == (found.ns, found.call_ns)
