"""Lanes share what there is to do."""

import threading

import pytest

from kernelci.lanes import spread

PATIENCE_S = 30.0


def test_each_item_goes_to_one_lane() -> None:
    found: dict[str, list[int]] = {"a": [], "b": []}
    spread(range(20), [found["a"].append, found["b"].append])
    assert list(range(20)) == sorted(found["a"] + found["b"])


def test_one_lane_keeps_the_order() -> None:
    found: list[int] = []
    spread(range(5), [found.append])
    assert [0, 1, 2, 3, 4] == found


def test_a_lane_that_is_busy_does_not_hold_up_the_others() -> None:
    over = threading.Event()
    found: list[int] = []

    def one(item: int) -> None:
        if item == 0:
            assert over.wait(PATIENCE_S)
        found.append(item)
        if item == 3:
            over.set()

    spread(range(4), [one, one])
    assert [1, 2, 3, 0] == found


def test_nothing_begins_after_a_failure() -> None:
    found: list[int] = []

    def one(item: int) -> None:
        found.append(item)
        raise KeyError(item)

    with pytest.raises(KeyError):
        spread(range(4), [one])
    assert [0] == found


def test_nothing_to_do() -> None:
    assert spread([], [print]) is None  # type: ignore[func-returns-value]
