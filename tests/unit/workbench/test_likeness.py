"""What bad values look like, and what failing cases have in common."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench import likeness

ORACLE = torch.linspace(-3, 4, 60, dtype=torch.float64).reshape(6, 10).exp()
X = torch.linspace(0, 1, 60).reshape(6, 10)


def _of(got: torch.Tensor, bad: torch.Tensor | None = None) -> str:
    return likeness.of_values(got, ORACLE, got != ORACLE if bad is None else bad, {"x": X})


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (torch.zeros(6, 10), "all of them are 0"),
        (torch.full((6, 10), 2.5), "all of them are 2.5"),
        (X, "they are those of the input x, unchanged"),
        (-ORACLE, "they have the wrong sign"),
        ((ORACLE * 1.03).float(), "they are the expected values times 1.03"),
        ((ORACLE * 2).bfloat16(), "they are the expected values times 2"),
        (ORACLE + 0.5, "they are the expected values plus 0.5"),
        (ORACLE - 3, "they are the expected values minus 3"),
        (torch.roll(ORACLE, 1, dims=-1), "they are what belongs one place before on the last axis"),
        (torch.roll(ORACLE, -1, dims=-1), "they are what belongs one place further on the last axis"),
        (ORACLE + torch.randn(6, 10, generator=torch.Generator().manual_seed(0)), ""),
        (torch.full((6, 10), float("nan")), ""),
    ],
)
def test_of_values(got: torch.Tensor, expected: str) -> None:
    bad = torch.ones(6, 10, dtype=torch.bool)
    bad[:, 0] = bad[:, -1] = False  # what is rolled around fits nowhere
    assert expected == _of(got, bad)


def test_a_single_bad_element_looks_like_nothing() -> None:
    got = ORACLE.clone()
    got[2, 3] = 0
    assert "" == _of(got)


def test_values_of_another_shape_look_like_nothing() -> None:
    assert "" == likeness.of_values(ORACLE[:1], ORACLE, torch.ones(1, 10, dtype=torch.bool))


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, -2.0, 3e38, float("inf"), float("nan")]), min_size=8, max_size=8))
def test_any_values_are_taken(values: list[float]) -> None:
    got = torch.tensor(values).reshape(2, 4)
    text = likeness.of_values(got, torch.ones(2, 4), got != 1, {"x": got})
    assert isinstance(text, str)


def _cases(*values: tuple[int, int, str]) -> list[dict[str, Any]]:
    return [{"rows": rows, "cols": cols, "dtype": dtype} for rows, cols, dtype in values]


GOOD = _cases((1, 64, "float32"), (4, 128, "float16"), (5, 32, "float32"))


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (_cases((1, 127, "float32")), "cols is no multiple of 32"),
        (_cases((1, 72, "float32"), (5, 33, "float16")), "cols is no multiple of 32"),
        (_cases((4, 64, "bfloat16"), (1, 32, "bfloat16")), "dtype is bfloat16"),
        (_cases((4, 4096, "float32"), (5, 2048, "float32")), "cols is 2048 or more, and at most 128 where it is right"),
        (
            _cases((70, 33, "float32")),
            "rows is 70 or more, and at most 5 where it is right, or cols is no multiple of 32",
        ),
        (_cases((70, 64, "float32"), (6, 32, "float16")), "rows is 6 or more, and at most 5 where it is right"),
        (_cases((4, 16, "float32"), (4, 0, "float32")), "cols is 16 or less, and at least 32 where it is right"),
        (_cases((1, 64, "float32")), ""),
        ([], ""),
    ],
)
def test_of_cases(bad: list[dict[str, Any]], expected: str) -> None:
    assert expected == likeness.of_cases(bad, GOOD)


def test_without_enough_that_pass_nothing_is_told() -> None:
    assert "" == likeness.of_cases(_cases((1, 127, "float32")), GOOD[:1])
