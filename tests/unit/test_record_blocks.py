"""Recording blocks: what a window of more work is, how time is spread over rows, the file, and the script without a
GPU."""

import importlib.util
import math
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kernelci import catalog, config, ladder
from kernelci.reference import Case
from kernelci.workbench import timing
from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Block

ROOT = Path(__file__).resolve().parents[2]
COST = Overhead(0.0, 0.0, 0.0, 1.0)
REFERENCE = """
from kernelci.reference import bench, check, like
def cases():
    yield check(rows=2, cols=5, dtype="float32")
    yield bench("a few", rows=3, cols=17, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
def cost(case):
    return case.rows * case.cols
"""
KERNEL = """# /// script
# dependencies = []
# [tool.kernelci]
# reference = "add"
# backend = "triton"
# entry = "f"
# targets = ["sm_80"]
# ///
import torch
def f(x, y):
    torch.add(x, 1, out=y)
"""


def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


RECORD = _loaded("record_blocks")
FILE = RECORD.blocks_file


@given(st.integers(1, 5000), st.sampled_from([0.0, 0.01, 0.02, 0.05]))
def test_every_slot_is_called_and_a_share_of_them_twice(count: int, slower: float) -> None:
    slots = RECORD.with_more(count, slower)
    assert (set(range(count)), count + math.ceil(count * slower - 1e-9)) == (set(slots), len(slots))


@given(st.integers(200, 5000), st.sampled_from([0.01, 0.02, 0.05]))
def test_a_second_call_is_half_a_window_from_the_first(count: int, slower: float) -> None:
    slots = RECORD.with_more(count, slower)
    places = [[place for place, slot in enumerate(slots) if slot == one] for one in {0, slots[1]}]
    apart = [max(both) - min(both) for both in places if len(both) == 2]
    assert apart
    assert min(apart) > 0.4 * len(slots)


@pytest.mark.parametrize(("calls", "side"), [(100, "base"), (100, "0"), (100, "0.01"), (6, "0.01"), (7, "0.05")])
def test_a_window_of_few_calls_is_scaled_to_the_share(calls: int, side: str) -> None:
    slower = 0.0 if side == "base" else float(side)
    took = 10.0 * len(RECORD.with_more(calls, slower))
    window = RECORD.scaled(Window(calls, took, took, sm_clock_hz=1.5e9), side)
    assert pytest.approx((10.0 * (1 + slower), 1.5e9)) == (window.device_ns / calls, window.sm_clock_hz)


def _recorder(starting: float, block: float) -> Any:
    return SimpleNamespace(starting_s=starting, block_s=block)


@pytest.mark.parametrize(
    ("left", "seconds", "recorders", "expected"),
    [
        (60, 100.0, [(0.0, 0.0)] * 4, (5, 2)),  # nobody knows yet how long blocks take
        (50, 100.0, [(2.0, 1.0)] * 4, (5, 5)),
        (50, 23.0, [(2.0, 1.0)] * 4, (5, 3)),  # as many as fit
        (50, 8.0, [(2.0, 1.0)] * 4, (5, 0)),
        (7, 100.0, [(2.0, 1.0)] * 4, (5, 2)),
        (3, 100.0, [(2.0, 1.0)] * 4, (3, 1)),
        (0, 100.0, [(2.0, 1.0)] * 4, (0, 0)),
    ],
)
def test_time_is_spread_evenly(left: int, seconds: float, recorders: list[Any], expected: tuple[int, int]) -> None:
    assert expected == RECORD.more(left, seconds, [_recorder(*one) for one in recorders])


def _taken(number: int, base: float, **more: Any) -> Any:
    made = [Window(10, 30 * base, 10 * base, 0.0, 1e9), Window(10, 20 * base, 11 * base, 0.0, 2e9)]
    windows = {side: list(made) for side in RECORD.SIDES}
    block = Block(windows, **more)
    return RECORD.Taken(number, block, [(side, 0.5, one[0]) for side, one in windows.items()])


def _row(*taken: Any) -> Any:
    case = Case("bench", "", (("rows", 3),))
    return RECORD.Row(case, timing.Scouted(1.0, -1), list(taken), {"window": [0.02, 0.04]}, 10, 1)


def test_a_row_has_the_fastest_windows_of_blocks_that_count() -> None:
    row = RECORD.recorded("k c", _row(_taken(0, 5.0), _taken(1, 6.0, noisy=True), _taken(1, 7.0)), COST)
    assert [((5.0, 5.0), (7.0, 7.0)), (0, 1), 3, {"window": 0.03}] == [row.aa, row.sets, len(row.blocks), row.seconds]
    assert [((10.0, 10.0), (14.0, 14.0))] * 2 == [row.wall.of(name) for name in ("0", "0.05")]
    assert [((1e9, 1e9),) * 2, ((2e9, 2e9),) * 2] == [row.clock.aa, row.wall_clock.of("0.02")]
    assert ["", "something else computed on the GPU between windows", ""] == [block.dropped for block in row.blocks]


def test_a_block_without_time_does_not_count() -> None:
    cost = Overhead(0.0, 0.0, 0.0, 1.0, 60.0)
    row = RECORD.recorded("k c", _row(_taken(0, 5.0), _taken(1, 7.0)), cost)
    assert ((1,), "a window took no longer than the clock itself") == (row.sets, row.blocks[0].dropped)


def test_the_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "blocks.json"
    found = FILE.Recording((RECORD.recorded("k c", _row(_taken(0, 5.0)), COST),), "a GPU", "2026-01-01", 3.0)
    FILE.write(path, found)
    assert (found, 3) == (FILE.read(path), len(path.read_text(encoding="utf-8").splitlines()))


def test_two_recordings_of_one_gpu_are_one() -> None:
    one = FILE.Recording((RECORD.recorded("k c", _row(_taken(0, 5.0), _taken(1, 6.0)), COST),), "a GPU", seconds=2.0)
    other = FILE.Recording((*one.rows, replace(one.rows[0], row="k d")), "a GPU", seconds=3.0)
    both = FILE.joined(one, other)
    assert [("k c", (0, 1, 2, 3), 4, 4), ("k d", (0, 1), 2, 2)] == [
        (row.row, row.sets, len(row.aa), len(row.wall_clock.slower["0.02"])) for row in both.rows
    ]
    assert (5.0, [0, 1, 2, 3]) == (both.seconds, [block.set for block in both.rows[0].blocks])


def test_a_recording_of_another_gpu_is_refused() -> None:
    with pytest.raises(ValueError, match="name another file"):
        FILE.joined(FILE.Recording((), "a GPU"), FILE.Recording((), "another"))


def test_the_old_recording_can_be_read() -> None:
    found = FILE.read(ROOT / "benchmarks" / "recorded" / "h200_blocks.json")
    assert [12] * 2 == [len(found.rows), sum(bool(row.wall.aa) for row in found.rows)]


def test_all_of_it_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, text in (("references/add.py", REFERENCE), ("kernels/add/plain.py", KERNEL)):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(text, encoding="utf-8")
    monkeypatch.setattr(timing, "WINDOW_NS", 1e6)
    options = config.load(tmp_path, {}, {"cache": str(tmp_path / "cache")})
    found = catalog.scan(tmp_path, options)
    with ladder.opened(found, options, ladder.Plan(found.kernels, tmp_path / "out")) as court:
        court.calibration = RECORD.ON_CPU
        out = RECORD.Out(tmp_path / "blocks.json", court)
        recorders = RECORD.scouted(RECORD.begun(court, found, ("add/plain",)), {"add/plain": ()})
        out.recorders = tuple(recorders)
        RECORD.run(recorders, 2, time.monotonic() + 60, out)

    (row,) = FILE.read(tmp_path / "blocks.json").rows
    windows = [side for block in row.blocks for side in sorted({one.side for one in block.windows})]
    sides = sorted((*RECORD.SIDES, RECORD.AWAKE)) * 2
    assert ("add/plain 3x17-fp32", 2, 3, sides) == (row.row, len(row.blocks), row.rounds, windows)
    orders = [[window.side for window in block.windows] for block in row.blocks]
    assert [(RECORD.AWAKE, 31, True)] * 2 == [(one[0], len(one), one[1:] == one[:0:-1]) for one in orders]
    assert {"drawing", "window", "checking", "starting"} == set(row.seconds)
