"""What blocks come to: which of them count, and their figures."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench.clock import Overhead, Window
from kernelci.workbench.contest import Block, Course, drop, is_noisy, log_ratios, per_call
from kernelci.workbench.nvml import Sampled

FULL = 4
COST = Overhead(1000.0, 1000.0, 1000.0, 10.0)


def _course(usual: float) -> Course:
    bank: Any = None
    return Course(bank, {"full": FULL}, usual_fill_ns=usual)


@pytest.mark.parametrize(
    ("usual", "fill", "noisy"),
    [
        (1e6, 1e6, False),
        (1e6, 3.4e6, False),
        (1e6, 3.6e6, True),
        (1e8, 1.51e8, False),
        (1e8, 1.6e8, True),
        (0, 9e9, False),
    ],
)
def test_a_fill_that_something_slowed(usual: float, fill: float, noisy: bool) -> None:
    assert noisy == is_noisy(Window(FULL, 1.0, 0.0, fill), _course(usual))


def _block(clock: float | None = None, noisy: bool = False, foreign: tuple[int, ...] = ()) -> Block:
    return Block({}, state=Sampled(1, sm_clock_hz=clock, foreign=foreign), noisy=noisy)


def test_blocks_that_do_not_count() -> None:
    blocks = [_block(1.9e9), _block(1.9e9), _block(1.2e9), _block(1.9e9, foreign=(7,)), _block(1.9e9, noisy=True)]
    drop(blocks)
    starts = ["", "", "clocks fell to 63 %", "another process (pid 7)", "something else computed"]
    assert [True] * 5 == [
        block.dropped.startswith(start) and bool(block.dropped) == bool(start)
        for block, start in zip(blocks, starts, strict=True)
    ]


def test_blocks_count_where_nothing_is_known_of_the_gpu() -> None:
    blocks = [_block(), Block({})]
    drop(blocks)
    assert ["", ""] == [block.dropped for block in blocks]


def _timed(base: Sequence[float], head: Sequence[float], dropped: str = "") -> Block:
    sides = {"base": base, "head": head}
    return Block(
        {side: [Window(10, COST.ns + 10 * ns, 0.0) for ns in some] for side, some in sides.items()}, dropped=dropped
    )


def test_a_blocks_figure_is_its_fastest_window() -> None:
    blocks = [_timed([5, 3, 4], [1]), _timed([7], [1]), _timed([1], [1], dropped="noise")]
    assert [3.0, 7.0] == per_call(blocks, "base", COST.wall)


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), max_size=8))
def test_ratios_turn_around_with_the_sides(times: list[tuple[float, float]]) -> None:
    blocks = [_timed([base], [head]) for base, head in times]
    forth, back = log_ratios(blocks, "base", "head", COST.wall), log_ratios(blocks, "head", "base", COST.wall)
    assert pytest.approx([-one for one in back]) == list(forth)


def test_half_a_block_is_no_pair() -> None:
    assert () == log_ratios([_timed([1], []), _timed([], [1]), Block({})], "base", "head", COST.wall)
