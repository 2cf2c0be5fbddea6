"""Where bad elements sit, in words: one test for each pattern."""

import pytest
import torch

from kernelci.workbench.location import locate, neighbours, pattern


def _bad(rows: int, cols: int, *places: object) -> torch.Tensor:
    bad = torch.zeros(rows, cols, dtype=torch.bool)
    for place in places:
        bad[place] = True
    return bad


ALL = slice(None)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (_bad(8, 8, ALL), "everything is bad"),
        (_bad(300, 8, (ALL, slice(0, None, 2))), "a pattern that repeats every 2 columns: [0]"),
        (_bad(8, 100, (ALL, slice(96, 100))), "all in the last columns, 96 to 99 of 100, the last tile of 32"),
        (_bad(8, 100, (ALL, 99)), "all in the last columns, 99 to 99 of 100"),
        (_bad(8, 129, (3, 128)), "all in the last columns, 128 to 128 of 129, the last tile of 128"),
        (_bad(100, 8, (slice(64, 100), ALL)), "whole rows are bad (36 of 100): all in the last rows, 64 to 99 of 100"),
        (
            _bad(64, 8, (slice(0, None, 4), ALL)),
            "whole rows are bad (16 of 64): a pattern that repeats every 4 rows: [0]",
        ),
        (_bad(8, 8, (3, ALL)), "whole rows are bad (1 of 8)"),
        (_bad(100, 8, (98, 2), (99, 5)), "all in the last rows, 98 to 99 of 100"),
        (_bad(256, 8, (70, 1), (100, 3)), "all in the block of rows 64 to 127"),
        (_bad(256, 8, (17, 1), (30, 3)), "all in the block of rows 16 to 31"),
        (_bad(8, 8, (1, 1), (6, 3)), "they are scattered"),
        (_bad(8, 8, (1, 1)), "a single one"),
    ],
)
def test_pattern(bad: torch.Tensor, expected: str) -> None:
    assert pattern(bad).startswith(expected)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 3, 4)])
def test_everything(shape: tuple[int, ...]) -> None:
    assert "everything is bad" == pattern(torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 0), (2, 3)])
def test_nothing(shape: tuple[int, ...]) -> None:
    assert locate(torch.zeros(shape, dtype=torch.bool)) is None


def test_vector() -> None:
    bad = torch.zeros(100, dtype=torch.bool)
    bad[96:] = True
    found = locate(bad)
    assert found is not None
    assert (4, 100, (96,)) == (found.count, found.total, found.first)


def test_first_and_worst() -> None:
    bad = _bad(4, 5, (1, 2), (3, 4))
    weight = torch.zeros(4, 5)
    weight[3, 4], weight[0, 0] = 2.0, 9.0
    found = locate(bad, weight)
    assert found is not None
    assert ((1, 2), (3, 4)) == (found.first, found.worst)


def test_nan_weighs_most() -> None:
    weight = torch.zeros(4, 5)
    weight[1, 2], weight[3, 4] = 7.0, torch.nan
    found = locate(_bad(4, 5, (1, 2), (3, 4)), weight)
    assert found is not None
    assert (3, 4) == found.worst


def test_text() -> None:
    found = locate(_bad(8, 8, (1, 1), (6, 3)))
    assert found is not None
    expected = "2 of 64 elements (3.12%) are bad; first at [1, 1], worst at [1, 1]; they are scattered"
    assert expected == found.text()


def test_index_in_three_dimensions() -> None:
    bad = torch.zeros(2, 3, 4, dtype=torch.bool)
    bad[1, 2, 3] = True
    found = locate(bad)
    assert found is not None
    assert (1, 2, 3) == found.first


def test_neighbours() -> None:
    actual, oracle = torch.arange(10.0).reshape(1, 10), torch.zeros(1, 10, dtype=torch.float64)
    assert "y[0, 3:8] got/expected: 3/0, 4/0, 5/0, 6/0, 7/0" == neighbours("y", (0, 5), actual, oracle)


def test_neighbours_at_the_edge() -> None:
    assert "y[0:2] got/expected: 1/0, 1/0" == neighbours("y", (0,), torch.ones(2), torch.zeros(2))


def test_neighbours_of_a_scalar() -> None:
    assert "y: got 1, expected 0" == neighbours("y", (), torch.ones(()), torch.zeros(()))
