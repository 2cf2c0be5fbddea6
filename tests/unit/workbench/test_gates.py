"""What is granted for arithmetic: what rows typically lose, and what float32 loses before an output is rounded."""

import pytest
import torch

from kernelci.workbench.compare import compare


def _rows_of_one_error(seed: int, scale: float) -> torch.Tensor:
    """An error for each of 2000 rows, that all 64 elements of it share."""
    return torch.randn(2000, 1, generator=torch.Generator().manual_seed(seed)).double() * scale


@pytest.mark.parametrize(("times", "passed"), [(3.0, True), (4096.0, False)])
def test_a_row_whose_honest_error_is_small_by_luck_is_held_to_the_typical_one(times: float, passed: bool) -> None:
    """As of a norm's backward pass: a sum that is off goes into the whole row, and in some rows it is right by luck."""
    generator = torch.Generator().manual_seed(3)
    oracle = torch.randn(2000, 64, generator=generator).double() * 2.0 ** torch.arange(-10, 10).repeat(100)[:, None]
    size = oracle.abs().amax(-1, keepdim=True)
    honest, actual = (oracle + _rows_of_one_error(seed, scale) * size for seed, scale in ((1, 1e-4), (2, times * 1e-4)))
    moved = (_rows_of_one_error(4, 1e-4) * size).abs().expand(-1, 64)
    assert passed == compare("dx", actual.float(), oracle, honest.float(), moved=moved).passed


@pytest.mark.parametrize(("times", "passed"), [(2.0, True), (4096.0, False)])
def test_what_float32_costs_is_granted_before_fp16_rounds(times: float, passed: bool) -> None:
    """Where terms cancel, the output's own rounding is the lesser error."""
    oracle = torch.randn(2000, 64, generator=torch.Generator().manual_seed(3)).double()
    moved = (_rows_of_one_error(4, 1e-3)).abs().expand(-1, 64)
    actual = (oracle + _rows_of_one_error(2, times * 1e-3)).half()
    found = [compare("dx", actual, oracle, oracle.half(), moved=one).passed for one in (None, moved)]
    assert [False, passed] == found
