"""The resampling of recorded blocks, on a recording that is made up: noise of 0.3 to 0.4 % a block."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

from kernelci import stats
from kernelci.model import Verdict

ROOT = Path(__file__).resolve().parents[2]
WORDS = {1: Verdict.SLOWER, -1: Verdict.FASTER, 2: Verdict.SAME, 0: Verdict.UNKNOWN}


@pytest.fixture(scope="module")
def power() -> ModuleType:
    """benchmarks/verdicts_power.py as a module."""
    spec = importlib.util.spec_from_file_location("verdicts_power", ROOT / "benchmarks" / "verdicts_power.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["verdicts_power"] = module
    spec.loader.exec_module(module)
    return module


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
    found = power.experiment(recording, 0.0, 300, 1)
    assert (0, 0.0) == (found.wrong_prs, found.slower)
    assert found.quiet > 0.97


@pytest.mark.parametrize(("slowdown", "least"), [(0.01, 0.90), (0.02, 0.99), (0.05, 1.0)])
def test_what_is_slower_is_found(slowdown: float, least: float, power: ModuleType, recording: Any) -> None:
    found = power.experiment(recording, slowdown, 200, 2)
    assert (0, True) == (found.wrong_prs, found.slower >= least)


def test_all_at_once_is_one_by_one(power: ModuleType) -> None:
    draw = np.random.default_rng(3)
    shift = draw.choice([0.0, 0.006, 0.01, -0.02], (2, 30))[..., None]
    series, control = draw.normal(0, 0.004, (2, 30, 24)) + shift, draw.normal(0, 0.004, (2, 30, 12))

    said, used = power.judged(series, control)

    for pr in range(2):
        assert _one_by_one(series[pr], control[pr]) == [
            (WORDS[int(word)], int(blocks)) for word, blocks in zip(said[pr], used[pr], strict=True)
        ]


def test_a_second_contest_is_judged_as_a_run_judges_it(power: ModuleType) -> None:
    draw = np.random.default_rng(4)
    said = draw.choice([-1, 0, 1, 2], (2, 30))
    again = draw.normal(0, 0.004, (2, 30, 8)) + draw.choice([0.0, 0.006, 0.02, -0.02], (2, 30))[..., None]
    control = draw.normal(0, 0.004, (2, 30, 4))

    found = power.confirmed(said, again, control)

    for place in np.ndindex(said.shape):
        verdict = WORDS[int(said[place])]
        stays = stats.shows(stats.effect(again[place], aa=control[place]), verdict, 0.005) or said[place] in (0, 2)
        assert (verdict if stays else Verdict.UNKNOWN) is WORDS[int(found[place])]


def _one_by_one(series: Any, control: Any) -> list[tuple[Verdict, int]]:
    """As a run decides: row by row with the public functions."""
    said = dict.fromkeys(range(len(series)), (Verdict.UNKNOWN, stats.LOOKS.budget))
    p = [1.0] * len(series)
    for blocks in stats.LOOKS.at:
        open_ = [row for row, (word, _) in said.items() if word is Verdict.UNKNOWN]
        beside = control[:, :blocks]
        found = {row: stats.effect(series[row, :blocks], aa=beside[row]) for row in open_}
        for row, one in found.items():
            p[row] = one.p
        q = stats.benjamini_hochberg(p)
        for row, one in found.items():
            word = stats.decide(one, q[row], 0.005, noise=stats.noise_floor(beside[row], blocks, series[row, :blocks]))
            said[row] = (word, blocks if word is not Verdict.UNKNOWN else stats.LOOKS.budget)
    return [said[row] for row in range(len(series))]


def test_spreads_name_each_row(power: ModuleType, recording: Any) -> None:
    found = power.spreads(recording, 1)
    assert [row.row for row in recording.rows] == [each.row for each in found]
    assert all(0.002 < each.block < 0.006 and each.effects < each.block for each in found)


def test_a_section_is_replaced_in_its_place(power: ModuleType) -> None:
    first = power.written("# Page\n", f"{power.BEGIN}\none\n{power.END}\n") + "\n## Next\n"
    second = power.written(first, f"{power.BEGIN}\ntwo\n{power.END}\n")
    assert f"# Page\n\n{power.BEGIN}\ntwo\n{power.END}\n\n## Next\n" == second


def test_the_command_prints_both_tables(tmp_path: Path) -> None:
    path = tmp_path / "blocks.json"
    path.write_text(json.dumps(made_up(3)), encoding="utf-8")
    command = [sys.executable, "benchmarks/verdicts_power.py", str(path), "--prs", "50"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    assert ["| 0% | 50 | 0 |", "| 5% | 50 | 0 |"] == [done.stdout.splitlines()[line][:15] for line in (2, 5)]
    assert "| softmax/triton 2 |" in done.stdout
