"""Template arguments get the names of the source, and everything else stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.compiling.naming import named
from kernelci.dumps.causes import parameters
from kernelci.dumps.specimen import Record

SOURCE = """
template <int SIZE> __device__ void pin(float (&d)[SIZE]) {}
template <int BM, int BN = 4,
          int STAGES>
__global__ void __launch_bounds__(128) matmul(const float* a) { pin<3>(a); }
template <typename T, int WIDTH> __global__ void softmax(T* x) {}
"""
SYMBOL = "_Z6matmulILi128ELi256ELi4EEvPKf"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("matmul<128, 256, 4>", "matmul<BM=128, BN=256, STAGES=4>"),
        ("softmax<Float32, 4>", "softmax<T=Float32, WIDTH=4>"),
        ("matmul<128, 256>", "matmul<128, 256>"),
        ("pin<3>", "pin<3>"),
        ("other<1, 2, 3>", "other<1, 2, 3>"),
        ("matmul", "matmul"),
        ("", ""),
    ],
)
def test_names_of_template_arguments(config: str, expected: str) -> None:
    assert expected == named(config, "", (SOURCE,))


def test_a_comparison_knows_them_by_name() -> None:
    record = Record(SYMBOL, named("", SYMBOL, (SOURCE,)))
    assert {"BM": "128", "BN": "256", "STAGES": "4"} == parameters(record)


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_any_text_has_an_answer(config: str, symbol: str, source: str) -> None:
    assert config == named(config, symbol, (source,)) or "=" in named(config, symbol, (source,))


def test_of_a_symbol_numbers_are_told() -> None:
    assert "softmax<WIDTH=8>" == named("", "_Z7softmaxI7Float32Li8EEvPT_", (SOURCE,))
