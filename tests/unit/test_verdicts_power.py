"""The resampling of recorded blocks, on a recording that is made up: noise of 0.3 to 0.4 % a block."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from kernelci import stats
from kernelci.model import Verdict
from kernelci.workbench import clock, figures

ROOT = Path(__file__).resolve().parents[2]
WORDS = {1: Verdict.SLOWER, -1: Verdict.FASTER, 2: Verdict.SAME, 0: Verdict.UNKNOWN, 3: None}  # None: INVALID
OPEN = (Verdict.UNKNOWN, stats.LOOKS.budget)


@pytest.fixture(scope="module")
def power(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("verdicts_power")


def made_up(rows: int = 12, blocks: int = 60) -> dict[str, Any]:
    """Blocks as they would be recorded."""
    draw = np.random.default_rng(5)

    def pairs(slower: float, sd: float) -> list[list[float]]:
        heads = 1e4 * (1 + slower) * np.exp(draw.normal(0, sd, blocks))
        return [[1e4, float(head)] for head in heads]

    return {
        "where": "made up",
        "rows": [
            {
                "row": f"softmax/triton {index}",
                "aa": pairs(0.0, 0.003 + index * 1e-4),
                "slower": {name: pairs(float(name), 0.003 + index * 1e-4) for name in ("0.01", "0.02", "0.05")},
            }
            for index in range(rows)
        ],
    }


@pytest.fixture(scope="module")
def recording(power: ModuleType) -> Any:
    return msgspec.convert(made_up(), power.Recording)


def test_nothing_slower_nothing_found(power: ModuleType, recording: Any) -> None:
    found = power.experiment(recording, 0.0, 150, 1)
    assert (0, 0.0) == (found.wrong_prs, found.slower)
    assert found.quiet > 0.97


@pytest.mark.parametrize(("slowdown", "least"), [(0.01, 0.90), (0.02, 0.99), (0.05, 1.0)])
def test_what_is_slower_is_found(slowdown: float, least: float, power: ModuleType, recording: Any) -> None:
    found = power.experiment(recording, slowdown, 80, 2)
    assert (0, True) == (found.wrong_prs, found.slower >= least)


def _channels(events: Any, wall: Any, cycles: Any, wall_clock: Any = None) -> Any:
    other = cycles if wall_clock is None else wall_clock
    return np.stack([events, events + wall, events + cycles, 0 * events + other], axis=-1)


@pytest.mark.parametrize(("wall", "cycles"), [(0.0, 0.0), (0.012, 0.001), (0.05, 0.004), (0.012, math.nan)])
def test_all_at_once_is_one_by_one(power: ModuleType, wall: float, cycles: float) -> None:
    draw = np.random.default_rng(3)
    shift = draw.choice([0.0, 0.006, 0.01, -0.02], (2, 30))[..., None]

    def drawn(blocks: int, moved: Any) -> Any:
        events, other = draw.normal(0, 0.004, (2, 30, blocks)) + moved, draw.normal(0, 1, (2, 2, 30, blocks))
        return _channels(events, wall * other[0], cycles * other[1])

    series, control = drawn(24, shift), drawn(12, 0.0)

    said, used, _ = power.judged(series, control)

    for pr in range(2):
        assert _one_by_one(series[pr], control[pr]) == [
            (WORDS[int(word)], int(blocks)) for word, blocks in zip(said[pr], used[pr], strict=True)
        ]


def test_rows_at_the_power_limit_all_at_once_and_one_by_one(power: ModuleType) -> None:
    draw = np.random.default_rng(9)

    def drawn(blocks: int) -> Any:
        seen, noise = draw.normal(0, 0.02, (2, 30, blocks)), draw.normal(0, 0.002, (2, 30, blocks))
        moved = np.repeat([0.0, 0.01, -0.02], 10)[:, None] if blocks == 24 else 0.0
        other = seen + draw.normal(0, 0.002, seen.shape)
        return _channels(-0.9 * seen + noise + moved, draw.normal(0, 0.005, seen.shape), seen, other)

    series, control = drawn(24), drawn(12)
    said, used, follows = power.judged(series, control)

    for pr in range(2):
        assert _one_by_one(series[pr], control[pr]) == [
            (WORDS[int(word)], int(blocks)) for word, blocks in zip(said[pr], used[pr], strict=True)
        ]
    assert follows == pytest.approx(-0.9, abs=0.1)
    assert (said[:, 10:20] == power.SLOWER).mean() > 0.9


def test_what_only_the_events_show_is_not_slower(power: ModuleType) -> None:
    draw = np.random.default_rng(6)
    events = draw.normal(0.004, 0.0002, (1, 60, 24))
    series = _channels(events, draw.normal(-0.004, 0.0002, events.shape), 0.0)
    control = _channels(draw.normal(0, 0.0002, (1, 60, 12)), 0.0, 0.0)
    assert {power.SAME} == set(power.judged(series, control)[0].ravel())
    assert {power.INVALID} == set(power.judged(series + np.array([0.02, 0.0, 0.02, 0.0]), control)[0].ravel())


def test_what_cycles_do_not_show_is_not_slower(power: ModuleType) -> None:
    draw = np.random.default_rng(7)
    events = draw.normal(0.02, 0.0002, (1, 60, 24))
    control = _channels(draw.normal(0, 0.0002, (1, 60, 12)), 0.0, 0.0)
    said = [set(power.judged(_channels(events, 0.0, by), control)[0].ravel()) for by in (0.0, -0.02)]
    assert [{power.SLOWER}, {power.UNKNOWN}] == said


def test_a_second_contest_is_judged_as_a_run_judges_it(power: ModuleType) -> None:
    draw = np.random.default_rng(4)
    said = draw.choice([-1, 0, 1, 2, 3], (2, 30))
    again = draw.normal(0, 0.004, (2, 30, 8, 4)) + draw.choice([0.0, 0.006, 0.02, -0.02], (2, 30))[..., None, None]
    again[0, ..., power.WALL] += 0.02
    control = draw.normal(0, 0.004, (2, 30, 4, 4))

    found = power.confirmed(said, again, control, np.zeros((2, 30)))

    for place in np.ndindex(said.shape):
        assert _kept(WORDS[int(said[place])], again[place], control[place]) is WORDS[int(found[place])]


def _kept(verdict: Verdict | None, again: Any, control: Any) -> Verdict | None:
    """What stays of a verdict (None: INVALID) after a second contest."""
    device, wall = (stats.effect(again[:, channel], aa=control[:, channel]) for channel in (0, 1))
    if verdict is None:
        return Verdict.UNKNOWN if wall.low - clock.AGREE <= device.effect <= wall.high + clock.AGREE else None
    differs = verdict in (Verdict.SLOWER, Verdict.FASTER)
    return Verdict.UNKNOWN if differs and not stats.shows(device, verdict, 0.005) else verdict


def _one_by_one(series: Any, control: Any) -> list[tuple[Verdict | None, int]]:
    """As a run decides: row by row with the public functions, as figures.Duel uses them."""
    said: dict[int, tuple[Verdict | None, int]] = dict.fromkeys(range(len(series)), OPEN)
    p, agree = [1.0] * len(series), [True] * len(series)
    for blocks in stats.LOOKS.at:
        found = {row: _Duel(series[row, :blocks], control[row, :blocks]) for row in said if said[row] == OPEN}
        for row, one in found.items():
            p[row], agree[row] = one.effect.p, one.agrees
        q = stats.benjamini_hochberg(p)
        for row, one in found.items():
            word = stats.decide(one.effect, q[row], 0.005, noise=one.noise, cycles=one.cycles, plain=one.plain)
            said[row] = (word, blocks) if word is not Verdict.UNKNOWN and agree[row] else OPEN
    return [(None, OPEN[1]) if said[row] == OPEN and not agree[row] else said[row] for row in said]


class _Duel:
    """What a run makes of a row's blocks."""

    def __init__(self, now: Any, beside: Any) -> None:
        clocks = [np.stack([both[:, 2] - both[:, 0], both[:, 3]], axis=-1) for both in (now, beside)]
        slope = float(stats.following(now[:, 0], clocks[0][:, 0], beside[:, 0], clocks[1][:, 0]))
        known = not np.isnan(clocks[0]).any()
        left_out = [slope * both if slope else 0.0 for both in clocks]
        steady, aa = now[:, :2] - left_out[0], beside[:, :2] - left_out[1]
        device, wall = (stats.effect(steady[:, channel], aa=aa[:, channel]) for channel in (0, 1))
        confirmed = wall.p <= figures.CONFIRMED and wall.effect * device.effect > 0
        self.effect = replace(device, p=device.p if confirmed else max(wall.p, device.p))
        self.agrees = wall.low - clock.AGREE <= device.effect <= wall.high + clock.AGREE
        self.noise = stats.noise_floor(aa[:, 0], len(now), steady[:, 0])
        self.cycles = stats.effect(now[:, 2]) if known else None
        self.plain = stats.effect(now[:, 0], aa=beside[:, 0]) if slope else None


def test_spreads_name_each_row(power: ModuleType, recording: Any) -> None:
    found = power.spreads(recording, 1)
    assert [row.row for row in recording.rows] == [each.row for each in found]
    assert all(0.002 < each.block < 0.006 and each.effects < each.block for each in found)


def test_the_command_prints_both_tables(tmp_path: Path) -> None:
    path = tmp_path / "blocks.json"
    path.write_text(json.dumps(made_up(3)), encoding="utf-8")
    command = [sys.executable, "benchmarks/verdicts_power.py", str(path), "--prs", "50", "--repetitions", "1"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    assert ["| 0% | 50 | 0 |", "| 5% | 50 | 0 |"] == [done.stdout.splitlines()[line][:15] for line in (2, 5)]
    assert "| softmax/triton 2 |" in done.stdout
    assert ["| 1 | 200 | 0 |"] == [line[:15] for line in done.stdout.splitlines()[-1:]]


def test_spread_between_processes(power: ModuleType) -> None:
    draw = np.random.default_rng(8)
    sets = np.repeat(np.arange(200), 4)
    inside = draw.normal(0, 0.002, 800)
    between = sys.modules["spreads"].between
    assert between(inside, sets) < 0.0006
    assert between(inside + draw.normal(0, 0.003, 200)[sets], sets) == pytest.approx(0.003, rel=0.15)


def test_goals_beside_what_was_found(power: ModuleType) -> None:
    powers = [power.Power(size, 1000, 1, found, 0.0, 0.9, 0.0, 9.0, 4.5) for size, found in ((0.0, 0.0), (0.02, 0.98))]
    noise_of = [power.Spread("row", 2, *([0.001] * 7), 0.96, 0.001, 0.0)]
    assert [
        ("wrong pull requests, at most 0.1%", "2 of 2,000", True),
        ("A/A effects within 0.3%, 95 %", "96.0%", True),
        ("2% found, 99%", "98.0%", False),
        ("GPU seconds a row, at most 4", "4.5", False),
    ] == power.goals(powers, noise_of)


def test_a_row_with_clocks_is_judged_in_cycles(power: ModuleType) -> None:
    pairs = ((100.0, 102.0), (100.0, 104.0))
    row = power.Recorded("row", pairs, {}, clock=power.blocks_file.Pairs(((2e9, 1e9), (1e9, 1e9))))
    assert power.channels(row, "0")[:, 2] == pytest.approx([math.log(0.51), math.log(1.04)])


@pytest.mark.parametrize(("seen", "blocks", "known"), [(0, 4, False), (1, 4, False), (3, 3, True)])
def test_clocks_that_few_blocks_show_are_not_known(power: ModuleType, seen: int, blocks: int, known: bool) -> None:
    clock_pairs = tuple((1e9, 1e9 if index < seen else 0.0) for index in range(4))
    row = power.Recorded("row", ((100.0, 101.0),) * 4, {}, clock=power.blocks_file.Pairs(clock_pairs))
    found = power.channels(row, "0")
    assert (blocks, known) == (len(found), not np.isnan(found[:, 2]).any())
