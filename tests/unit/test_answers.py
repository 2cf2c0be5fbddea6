"""Outputs with more than one right answer, and random ones."""

import pytest
import torch

from kernelci.answers import among_nearest, among_ties, follows, share

VALUES = torch.tensor([[3.0, 5.0, 5.0, 1.0], [2.0, 0.0, 2.0, 2.0]])
BEST = torch.tensor([[1, 2], [0, 2]])


@pytest.mark.parametrize(
    ("index", "bad"),
    [
        ([[1, 2], [0, 2]], 0),
        ([[2, 1], [3, 0]], 0),
        ([[1, 1], [0, 2]], 1),
        ([[1, 0], [0, 2]], 1),
        ([[1, 4], [0, 2]], 1),
        ([[1, -1], [0, 2]], 1),
    ],
)
def test_among_ties(index: list[list[int]], bad: int) -> None:
    assert bad == int(among_ties(VALUES, torch.tensor(index), BEST).sum())


@pytest.mark.parametrize(
    ("exact", "integer", "bad"),
    [
        (63.5, 63, False),
        (63.5, 64, False),
        (63.5001, 63, True),
        (63.500001, 63, False),
        (-63.5, -65, True),
        (0.0, 0, False),
        (0.0, 1, True),
        (float("nan"), 0, True),
    ],
)
def test_among_nearest(exact: float, integer: int, bad: bool) -> None:
    found = among_nearest(torch.tensor([exact], dtype=torch.float64), torch.tensor([integer], dtype=torch.int8))
    assert [bad] == found.tolist()


def test_a_quantization_may_multiply_or_divide_by_its_scale() -> None:
    x = torch.randn(64, 256, generator=torch.Generator().manual_seed(3)).half().float()
    largest = x.abs().amax(-1, keepdim=True)
    exact = x.double() * 127 / largest.double()
    divided, multiplied = (x / (largest / 127)).round(), (x * (127 / largest)).round()
    wrong = [
        int(among_nearest(exact, one.to(torch.int8)).sum()) for one in (divided, multiplied, divided.clamp(max=99))
    ]
    assert ([0, 0], True, True) == (wrong[:2], wrong[2] > 0, bool((divided != multiplied).any()))


def test_the_same_index_twice_is_allowed_where_it_may() -> None:
    assert 0 == int(among_ties(VALUES, torch.tensor([[1, 1], [0, 0]]), BEST, distinct=False).sum())


def _uniform(count: int = 20_000) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(5))


def test_follows() -> None:
    assert "" == follows(_uniform(), lambda values: values.clamp(0, 1))


@pytest.mark.parametrize("power", [0.8, 1.3, 2.0])
def test_another_distribution(power: float) -> None:
    assert "distance" in follows(_uniform() ** power, lambda values: values.clamp(0, 1))


def test_nan_follows_nothing() -> None:
    assert "NaN" in follows(torch.tensor([torch.nan, 0.5]), lambda values: values)


def test_discrete_samples() -> None:
    dice = (_uniform() * 6).floor() + 1
    assert ("", True) == (follows(dice, lambda v: v / 6), "" != follows(dice, lambda v: v / 7))


@pytest.mark.parametrize(("probability", "right"), [(0.3, True), (0.25, False), (0.35, False)])
def test_share(probability: float, right: bool) -> None:
    assert right == (share(_uniform() < 0.3, probability) == "")
