"""Casts within a problem's code mean the referee's precision."""

import pytest
import torch

from kernelci.problems.exact import Exact, widest


@pytest.mark.parametrize(
    "code",
    [
        "x.float()",
        "x.to(torch.bfloat16)",
        "x.to(dtype=torch.float16)",
        "torch.zeros(3)",
        "torch.softmax(x, 0, dtype=torch.float32)",
    ],
)
def test_everything_is_float64(code: str) -> None:
    with Exact(torch.float64):
        found = eval(code, {"torch": torch, "x": torch.rand(3, dtype=torch.float64)})
    assert torch.float64 == found.dtype


def test_float32_stays_where_it_is_the_widest() -> None:
    with Exact(torch.float32):
        found = torch.rand(3).half().float()
    assert torch.float32 == found.dtype


def test_integers_and_eight_bits_stay() -> None:
    with Exact(torch.float64):
        found = (torch.arange(3).dtype, torch.rand(3).to(torch.float8_e4m3fn).dtype)
    assert (torch.int64, torch.float8_e4m3fn) == found


def test_the_widest_of_some() -> None:
    found = widest([1, torch.rand(1).half(), torch.rand(1).double()]), widest([torch.rand(1).half()])
    assert (torch.float64, torch.float32) == found
