"""A trace summed up."""

import pytest

from kernelci.tracing.regions import GAP, Region, Trace, Track
from kernelci.tracing.table import joined, kind_of, summed


def track(sm: int, begin: float, end: float, *regions: tuple[str, float, float]) -> Track:
    return Track(sm, 0, 0, begin, end, tuple(Region(*region) for region in regions))


# A producer and a consumer on one multiprocessor, and another one that is idle half the time.
TRACE = Trace(
    (
        track(0, 0, 100, ("load", 0, 80)),
        track(0, 0, 100, ("wait", 0, 20), ("compute", 20, 90)),
        track(1, 0, 50, ("load", 0, 10), ("compute", 10, 50)),
    )
)


def test_times_of_regions_and_gaps_are_the_lifetimes() -> None:
    found = summed(TRACE)
    assert {"compute": 110, "load": 90, "wait": 20, GAP: 30} == {line.name: line.time_ns for line in found.lines}
    assert 250 == found.lifetime_ns
    assert 1 == pytest.approx(sum(line.share for line in found.lines))


def test_lines_come_longest_first_and_gaps_last() -> None:
    assert ["compute", "load", "wait", GAP] == [line.name for line in summed(TRACE).lines]


def test_a_line_counts_visits() -> None:
    line = summed(TRACE).line("load")
    assert line is not None
    assert (2, 45, 80, 2) == (line.count, line.mean_ns, line.longest_ns, line.busy_warps)


def test_overlap_is_of_the_lesser_of_copying_and_computing() -> None:
    # Multiprocessor 0 copies until 80 and computes from 20 to 90: 60 of 70; the other never both.
    assert pytest.approx(60 / 80) == summed(TRACE).overlap


def test_without_both_there_is_no_overlap() -> None:
    assert summed(Trace((track(0, 0, 9, ("load", 0, 5)),))).overlap is None


def test_imbalance_is_of_the_busiest_multiprocessor() -> None:
    assert pytest.approx(100 / 75 - 1) == summed(TRACE).imbalance


def test_the_span_is_from_the_first_to_the_last() -> None:
    assert 100 == summed(TRACE).span_ns


def test_nothing_has_no_lines() -> None:
    found = summed(Trace())
    assert ((), 0, 0, None, 0) == (found.lines, found.lifetime_ns, found.span_ns, found.overlap, found.imbalance)


@pytest.mark.parametrize(
    ("name", "expected"), [("load", "copy"), ("store_rows", "copy"), ("compute", "compute"), ("epilogue", ""), ("", "")]
)
def test_a_name_tells_what_a_region_does(name: str, expected: str) -> None:
    assert expected == kind_of(name)


def test_spans_are_joined() -> None:
    assert [(0, 5), (7, 9)] == joined([(7, 9), (0, 2), (1, 5), (3, 4)])
