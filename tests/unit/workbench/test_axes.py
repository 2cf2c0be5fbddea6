"""Whose a work is, and by how much it moves so that it lies between its launch and the wait for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench.axes import OneCall, shift_ns, split, together
from kernelci.workbench.happening import Happening

ENTRY, WAIT = Happening("call", "f", 100, 130), Happening("wait", "w", 130, 170)
LAUNCH = Happening("api", "cuLaunchKernel", 110, 115, correlation=7)


def call(*works: Happening) -> OneCall:
    (found,) = split((ENTRY, LAUNCH, *works, WAIT))
    return found


def work(start: int, end: int, correlation: int = 7) -> Happening:
    return Happening("kernel", "k", start, end, 3, correlation)


@pytest.mark.parametrize(
    ("start", "end", "shift"),
    [
        (112, 150, 0),
        (110, 170, 0),
        (90, 120, 20),  # it began before its launch
        (160, 190, -20),  # it ended after the wait
        (100, 190, 10),  # longer than both allow: the launch counts
    ],
)
def test_works_move_as_little_as_mends_it(start: int, end: int, shift: int) -> None:
    one = call(work(start, end))
    assert shift == shift_ns(one)
    assert [(start + shift, end + shift)] == [(each.start_ns, each.end_ns) for each in together(one).works]


def test_all_works_of_a_call_move_alike() -> None:
    moved = together(call(work(90, 100), work(105, 120))).works
    assert [(110, 120), (125, 140)] == [(each.start_ns, each.end_ns) for each in moved]


def test_a_work_without_a_launch_is_the_calls_in_whose_time_it_lies() -> None:
    inside, outside = work(140, 150, 0), work(300, 310, 0)
    assert (inside,) == call(inside, outside).works


def test_a_work_of_a_launch_outside_of_calls_is_nobodys() -> None:
    other = Happening("api", "cuLaunchKernel", 10, 12, correlation=9)
    (found,) = split((other, ENTRY, LAUNCH, work(140, 150, 9), WAIT))
    assert () == found.works


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 100)), min_size=1, max_size=6))
def test_no_work_begins_before_its_launch(spans: list[tuple[int, int]]) -> None:
    one = together(call(*(work(start, start + length) for start, length in spans)))
    assert all(each.start_ns >= LAUNCH.start_ns for each in one.works)
