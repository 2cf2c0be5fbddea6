"""A solution's module as an entry: where the referee's weights go, and what becomes of the rest."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from kernelci.compiling.modelled import Entry, Misfit

CASE = SimpleNamespace(_init=[3], _inputs=["x"], _weights=[["fc_weight", "fc.weight"], ["fc_bias", "fc.bias"]])
X, WEIGHT, BIAS = torch.rand(2, 3), torch.rand(3, 3), torch.rand(3)


class SameNames(nn.Module):
    """The problem's own names."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.fc = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


class OtherNames(nn.Module):
    """Names of its own, and another order."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(size))
        self.matrix = nn.Parameter(torch.zeros(size, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.matrix.T + self.shift


class NoBias(nn.Module):
    """A module that has left a weight out."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.zeros(size, size))


def _entry(solution: type[nn.Module]) -> Entry:
    entry = Entry(solution)
    entry.prepare(CASE)
    return entry


@pytest.mark.parametrize("solution", [SameNames, OtherNames])
def test_weights_find_their_place(solution: type[nn.Module]) -> None:
    found = _entry(solution)(x=X, fc_weight=WEIGHT, fc_bias=BIAS)
    assert torch.equal(X @ WEIGHT.T + BIAS, found)


def test_weights_are_those_of_each_call() -> None:
    entry = _entry(OtherNames)
    entry(x=X, fc_weight=WEIGHT, fc_bias=BIAS)
    assert torch.equal(X @ WEIGHT + BIAS, entry(x=X, fc_weight=WEIGHT.T, fc_bias=BIAS))


def test_weights_are_not_copied() -> None:
    entry = _entry(SameNames)
    entry(x=X, fc_weight=WEIGHT, fc_bias=BIAS)
    assert WEIGHT.data_ptr() == entry._model.fc.weight.data_ptr()


def test_a_weight_without_a_place() -> None:
    with pytest.raises(Misfit, match=r"no parameter for the weight fc\.bias of shape \(3,\).* matrix \(3, 3\)"):
        _entry(NoBias)(x=X, fc_weight=WEIGHT, fc_bias=BIAS)


def test_what_is_more_than_it_takes_is_left() -> None:
    found = _entry(SameNames)(x=X, fc_weight=WEIGHT, fc_bias=BIAS, y=torch.empty(2, 3))
    assert (2, 3) == tuple(found.shape)


def test_both_sides_build_the_module_under_one_seed() -> None:
    from kernelci.compiling import modelled
    from kernelci.problems import kernelbench

    assert kernelbench.SEED == modelled.SEED
