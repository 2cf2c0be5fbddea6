"""CuTe DSL's ranges as marks: numbers, and what belongs together."""

from typing import Any

import pytest

from kernelci.tracing import ptx, records
from kernelci.tracing.prelude import Tracing
from kernelci.workbench import iket
from kernelci.workbench.iket import Ranges


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(iket, "_emit", found.append)
    return found


def _ranges(*regions: str) -> Ranges:
    return Ranges(Tracing(0x1000, regions))


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def test_a_pop_ends_what_was_pushed_last(emitted: list[str]) -> None:
    ranges = _ranges("a", "b")
    push, pop = ranges.pushing(_nothing), ranges.popping(_nothing)
    push("b")
    push("a")
    pop()
    pop()
    assert [ptx.mark(1, False), ptx.mark(0, False), ptx.mark(0, True), ptx.mark(1, True)] == emitted


def test_a_pop_without_a_push(emitted: list[str]) -> None:
    with pytest.raises(ValueError, match="without a range_push"):
        _ranges().popping(_nothing)()


def test_what_one_kernel_left_open_is_not_the_next_ones(emitted: list[str]) -> None:
    ranges = _ranges("a")
    ranges.pushing(_nothing)("a")
    ranges.opening(_nothing)(None)
    ranges.entering(_nothing)(None)
    with pytest.raises(ValueError, match="without a range_push"):
        ranges.popping(_nothing)()


def test_only_a_kernels_function_gets_a_track(emitted: list[str]) -> None:
    ranges = _ranges()
    ranges.entering(_nothing)(None)  # of a host function
    assert [] == emitted
    ranges.opening(_nothing)(None)
    ranges.entering(_nothing)(None)
    ranges.leaving(_nothing)(None)
    assert [ptx.begin(0x1000), ptx.end()] == emitted


def test_a_marked_start_keeps_its_token(emitted: list[str]) -> None:
    token = object()
    assert token is _ranges("a").starting(lambda name, payload, **place: token)("a")
    assert [ptx.mark(0, False)] == emitted


def test_more_names_than_there_are_numbers(emitted: list[str]) -> None:
    ranges = _ranges()
    for number in range(records.REGIONS):
        assert number == ranges.number(f"r{number}")
    with pytest.raises(ValueError, match="64 regions at most"):
        ranges.number("one more")
