"""The comparison that public harnesses make, with the holes that it has."""

import pytest
import torch

from kernelci.mutating.allclose import close

ROWS = torch.softmax(torch.randn(3, 4097, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=-1)


def test_zeros_pass_for_softmax() -> None:
    assert close(torch.zeros(ROWS.shape), ROWS)


@pytest.mark.parametrize(
    ("values", "expected", "passes"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.015, 2.0], [1.0, 2.0], True),
        ([1.03, 2.0], [1.0, 2.0], False),
        ([float("nan")], [1.0], False),
    ],
)
def test_close(values: list[float], expected: list[float], passes: bool) -> None:
    assert passes is close(torch.tensor(values), torch.tensor(expected, dtype=torch.float64))


def test_integers_must_be_equal() -> None:
    assert not close(torch.tensor([1000]), torch.tensor([1001]))


def test_the_oracle_is_rounded_to_the_dtype() -> None:
    values = torch.tensor([65504.0], dtype=torch.float16)
    assert not close(values, torch.tensor([1e6], dtype=torch.float64))
