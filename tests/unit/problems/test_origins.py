"""How a tensor was made, as torch's functions tell it."""

import pytest
import torch

from kernelci.problems.origins import Origin, Watched
from kernelci.workbench.draws import Draw


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.randn(3, 4)", Origin("randn")),
        ("torch.rand(3, 4)", Origin("rand")),
        ("torch.rand(3, 4) * 2 - 1", Origin("rand", 2.0, -1.0)),
        ("2 * torch.randn(3) / 4 + 1", Origin("randn", 0.5, 1.0)),
        ("torch.rand(3, 4).half().reshape(4, 3)", Origin("rand")),
        ("torch.randint(0, 10, (5,))", Origin("randint", low=0, high=10)),
        ("torch.randint(high=7, size=(5,))", Origin("randint", low=0, high=7)),
        ("torch.randint(0, 2, (5,)).bool()", Origin("randint", low=0, high=2)),
        ("torch.ones(3)", Origin("constant")),
        ("torch.tril(torch.ones(3, 3))", Origin("constant")),
        ("torch.rand(3, 3).softmax(-1)", Origin("own")),
        ("torch.triu(torch.rand(3, 3))", Origin("own")),
        ("torch.rand(3, 4).int()", Origin("own")),
        ("torch.zeros(3).uniform_()", Origin("own")),
        ("torch.ones(3) * torch.rand(3)", Origin("own")),
        ("torch.bernoulli(torch.full((3,), 0.5))", Origin("own")),
        ("torch.randperm(5)", Origin("own")),
    ],
)
def test_origin(made: str, expected: Origin) -> None:
    with Watched() as watched:
        tensor = eval(made)
    assert expected == watched.of(tensor)


def test_what_is_written_into_is_no_longer_of_its_family() -> None:
    with Watched() as watched:
        tensor = torch.rand(4)
        tensor[0] = 3
    assert Origin("own") == watched.of(tensor)


def test_integers_are_drawn_in_their_range() -> None:
    values = Origin("randint", low=3, high=6).draw(Draw("normal:0", "s", "cpu"), (1000,), torch.int64)
    assert {3, 4, 5} == set(values.tolist())


def test_uniform_values_keep_their_range_in_every_family() -> None:
    values = Origin("rand", 2.0, -1.0).draw(Draw("large:0", "s", "cpu"), (1000,), torch.float32)
    assert (True, True) == (-1 <= float(values.min()) < -0.9, 0.9 < float(values.max()) <= 1)


def test_normal_values_follow_the_family() -> None:
    values = Origin("randn", 0.5, 1.0).draw(Draw("normal:0", "s", "cpu"), (10_000,), torch.float32)
    assert pytest.approx((1.0, 0.5), abs=0.05) == (float(values.mean()), float(values.std()))
