"""What a history makes suspicious, and what the answers to that change."""

import datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kernelci import history, trend
from kernelci.history import Event, Measure
from kernelci.nightly import detect
from kernelci.nightly.detect import State
from kernelci.nightly.series import Series, load

DAY = datetime.timedelta(days=1)


def _series(tmp_path: Path, measures: list[Measure]) -> tuple[Series, ...]:
    path, data = history.month_file("2026-01", "x", history.encode(measures))
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(data)
    return load(tmp_path)


@pytest.fixture
def nights(measure):
    """Records of so many nights, with a step of a size at a night, for some kernels; the probes may move too."""

    def make(count: int = 45, at: int = 42, size: float = 0.05, probe: float = 0.0, **more) -> list[Measure]:
        draw = np.random.default_rng(3)
        return [
            measure(
                night,
                1000.0 * (1 + size * (night >= at)) * (1 + float(draw.normal(0, 0.002))),
                copy=4e12 / (1 + probe * (night >= at)),
                **more,
            )
            for night in range(count)
        ]

    return make


def test_a_step_is_suspected_with_the_commit_before_and_tonights(nights, tmp_path: Path) -> None:
    (found,) = detect.tonight(_series(tmp_path, nights()), ()).suspects

    assert ("softmax/a", "c", "NVIDIA H200", "step") == (found.kernel, found.case, found.gpu, found.kind)
    assert int(found.good, 16) < 42 <= int(found.bad, 16) == 44
    assert 0.04 < found.size < 0.06


def test_a_quiet_history_is_quiet(nights, tmp_path: Path) -> None:
    assert detect.Tonight() == detect.tonight(_series(tmp_path, nights(size=0.0)), ())


def test_no_history_is_quiet() -> None:
    assert detect.Tonight() == detect.tonight((), ())


def _answer(series: Series, verdict: str, night: int, since: int, **more) -> Event:
    days = [datetime.date(2026, 1, 1) + at * DAY for at in (night, since)]
    return Event(days[0], "remeasured", *series.id, days[1], "a", "b", verdict, **more)


@pytest.mark.parametrize("verdict", ["SLOWER", "FASTER", "SAME"])
def test_what_was_decided_tonight_is_not_suspected_again(nights, tmp_path: Path, verdict: str) -> None:
    every = _series(tmp_path, nights())

    assert () == detect.tonight(every, [_answer(every[0], verdict, 44, 42)]).suspects


def test_what_was_left_open_is_suspected_again(nights, tmp_path: Path) -> None:
    every = _series(tmp_path, nights())

    assert 1 == len(detect.tonight(every, [_answer(every[0], "UNKNOWN", 43, 42)]).suspects)


def test_an_open_answer_that_rules_out_half_of_it_denies_it(nights, tmp_path: Path) -> None:
    every = _series(tmp_path, nights())
    answer = _answer(every[0], "UNKNOWN", 44, 42, high=0.02, suspected=0.05)

    assert () == detect.tonight(every, [answer]).suspects


def test_a_second_step_is_suspected_against_the_new_level(nights, tmp_path: Path) -> None:
    first = nights(70, 30, 0.05)
    second = [msgspec.structs.replace(each, time_ns=each.time_ns * 1.05) for each in first[67:]]
    every = _series(tmp_path, first[:67] + second)

    (found,) = detect.tonight(every, [_answer(every[0], "SLOWER", 33, 30)]).suspects

    assert 0.04 < found.size < 0.06
    assert int(found.good, 16) >= 33


def test_a_night_that_was_not_measured_raises_nothing(nights, tmp_path: Path) -> None:
    dead = [msgspec.structs.replace(each, time_ns=None) if each.night.day > 13 else each for each in nights(45)[:44]]
    every = _series(tmp_path, [*dead[:42], *(msgspec.structs.replace(each, time_ns=None) for each in nights()[42:])])

    assert () == detect.tonight(every, ()).suspects


def test_the_same_commit_can_not_have_done_it(nights, tmp_path: Path) -> None:
    every = _series(tmp_path, nights(commit="c" * 40))

    assert () == detect.tonight(every, ()).suspects


def test_a_new_driver_starts_afresh(nights, tmp_path: Path) -> None:
    moved = [msgspec.structs.replace(each, driver="590") if each.night.month > 1 else each for each in nights(45, 31)]

    assert () == detect.tonight(_series(tmp_path, moved), ()).suspects


def test_a_probe_that_moved_along_lays_it_to_the_machine(nights, tmp_path: Path) -> None:
    found = detect.tonight(_series(tmp_path, nights(probe=0.05)), ())

    assert ((), ["NVIDIA H200"]) == (found.suspects, [gpu for gpu, _ in found.environment])
    assert "copy probe" in found.environment[0][1]


def test_most_series_that_moved_together_are_the_machines(nights, tmp_path: Path) -> None:
    made = [each for name in "abcdefgh" for each in nights(kernel=f"softmax/{name}")]

    found = detect.tonight(_series(tmp_path, made), ())

    assert ((), 1) == (found.suspects, len(found.environment))


def test_what_moved_much_further_than_the_machine_is_still_suspected(nights, tmp_path: Path) -> None:
    made = [each for name in "abcdefgh" for each in nights(kernel=f"softmax/{name}", size=0.03)]
    made += nights(kernel="softmax/z", size=0.2)

    (found,) = detect.tonight(_series(tmp_path, made), ()).suspects

    assert "softmax/z" == found.kernel


def test_the_budget_takes_what_became_slower_first_and_counts_the_rest(nights, tmp_path: Path) -> None:
    made = [each for name in "abcdefghijkl" for each in nights(kernel=f"softmax/{name}", size=0.0)]
    made += nights(kernel="softmax/y", size=-0.1) + nights(kernel="softmax/z", size=0.05)

    found = detect.tonight(_series(tmp_path, made), (), budget=1)

    assert (["softmax/z"], 1) == ([each.kernel for each in found.suspects], found.left)


def test_creep_is_suspected_against_the_night_where_it_began(measure, tmp_path: Path) -> None:
    made = [measure(night, 1000.0 * (1 + 0.06 * night / 150)) for night in range(151)]
    every = _series(tmp_path, made)

    found = detect.look([float(np.log(time)) for time in every[0].time_ns], State(fresh=151))

    assert isinstance(found, trend.Creep)
    assert 0.02 < found.size


def test_a_change_is_dated_by_the_levels(nights, tmp_path: Path) -> None:
    (series,) = _series(tmp_path, nights(80, 42))
    suspected = datetime.date(2026, 1, 1) + 45 * DAY

    assert datetime.date(2026, 1, 1) + 42 * DAY == detect.dated(series, _answer(series, "SLOWER", 47, 45, delta=0.05))
    assert suspected == detect.dated(series, _answer(series, "FASTER", 47, 45, delta=-0.05))


def test_states_follow_the_answers() -> None:
    start = State()

    assert State(40, 45, 44) == start.after(44, 40, "SLOWER")
    assert State(28, 45, 44) == start.after(44, 3, "FASTER")
    assert State(0, 45, 0) == start.after(44, 40, "SAME")
    assert start == start.after(44, 40, "UNKNOWN")
