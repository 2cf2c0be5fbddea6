"""What a file defines tells whose format it is in, and which backend its kernel has."""

import pytest

from kernelci import problems
from kernelci.problems import Defined


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        ("import triton", "triton"),
        ("import triton.language as tl", "triton"),
        ("import tilelang.language as T", "tilelang"),
        ("import cutlass.cute as cute\nimport cuda.bindings.driver", "cutedsl"),
        ("from cuda.core import Program", "cuda"),
        ("from torch.utils.cpp_extension import load_inline", "torch"),
        ("def f():\n    import triton", "triton"),
        ("from .triton import x", "torch"),
    ],
)
def test_backend(text: str, backend: str) -> None:
    assert backend == problems.defined(text).backend


def test_a_problem() -> None:
    assert problems.defined("class Model: ...\ndef get_inputs(): ...").is_problem


def test_a_model_alone_is_no_problem() -> None:
    assert not problems.defined("class Model: ...").is_problem


def test_a_solution() -> None:
    assert problems.defined("class ModelNew: ...").is_solution


def test_what_does_not_parse_defines_nothing() -> None:
    assert Defined() == problems.defined("class Model(:")
