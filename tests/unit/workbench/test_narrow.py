"""fp8 and fp4 as numbers: coding, facts, and the gates on them."""

import pytest
import torch

from kernelci.workbench.compare import compare
from kernelci.workbench.narrow import FP4, decoded, encoded, facts, is_float, logical_shape

EIGHT = [torch.float8_e4m3fn, torch.float8_e5m2]
fp4 = pytest.mark.skipif(FP4 is None, reason="this torch has no fp4")


@fp4
def test_fp4_round_trip() -> None:
    values = torch.tensor([[0.0, 0.5, -1.0, 1.5, 2.0, -3.0, 4.0, 6.0]])
    assert torch.equal(values.double(), decoded(encoded(values, FP4)))


@fp4
@pytest.mark.parametrize(
    ("value", "nearest"), [(0.25, 0.0), (0.26, 0.5), (0.75, 1.0), (2.5, 2.0), (3.5, 4.0), (5.0, 4.0), (99.0, 6.0)]
)
def test_fp4_rounds_to_nearest_and_ties_to_even(value: float, nearest: float) -> None:
    assert [nearest, -nearest] == decoded(encoded(torch.tensor([value, -value]), FP4)).tolist()


@fp4
def test_fp4_holds_two_an_element() -> None:
    assert ((3, 8), True) == (logical_shape((3, 4), FP4), is_float(FP4))


@pytest.mark.parametrize(("dtype", "largest"), [(EIGHT[0], 448.0), (EIGHT[1], 57344.0), (torch.float16, 65504.0)])
def test_facts(dtype: torch.dtype, largest: float) -> None:
    assert largest == facts(dtype).max


def _truth(dtype: torch.dtype, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    oracle = torch.randn(16, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * scale
    return oracle, encoded(oracle, dtype)


@pytest.mark.parametrize("dtype", [*EIGHT, pytest.param(FP4, marks=fp4)])
def test_honest_passes(dtype: torch.dtype) -> None:
    oracle, honest = _truth(dtype)
    assert compare("y", honest, oracle, honest).passed


@pytest.mark.parametrize("dtype", [*EIGHT, pytest.param(FP4, marks=fp4)])
@pytest.mark.parametrize("factor", [0.0, -1.0, 0.7])
def test_wrong_fails(dtype: torch.dtype, factor: float) -> None:
    oracle, honest = _truth(dtype)
    assert not compare("y", encoded(oracle * factor, dtype), oracle, honest).passed


@pytest.mark.parametrize("dtype", EIGHT)
def test_fp8_may_saturate(dtype: torch.dtype) -> None:
    oracle = torch.tensor([[1.0, 1e6, -1e6]], dtype=torch.float64)
    largest = facts(dtype).max
    saturated = torch.tensor([[1.0, largest, -largest]]).to(dtype)
    assert (True, False) == tuple(
        compare("y", got, oracle, encoded(oracle, dtype)).passed for got in (saturated, torch.zeros(1, 3).to(dtype))
    )
