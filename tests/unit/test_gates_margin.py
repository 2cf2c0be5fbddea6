"""The gates' margin on a few cases: honest arithmetic passes in all draws, careless arithmetic fails in some."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from kernelci.reference import load

ROOT = Path(__file__).resolve().parents[2]
QUICK = {
    ("softmax", "float32"): "3x127-fp32",
    ("softmax", "float16"): "3x127-fp16",
    ("rmsnorm", "float32"): "3x127-fp32-eps1e-05",
    ("rmsnorm", "bfloat16"): "3x127-bf16-eps1e-05",
    ("matmul", "float32"): "33x47x101-fp32",
    ("matmul", "bfloat16"): "1x512x512-bf16",
}


@pytest.fixture(scope="module")
def margin(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("gates_margin")


@pytest.mark.parametrize(("name", "dtype"), QUICK)
def test_margin(margin: ModuleType, name: str, dtype: str) -> None:
    reference = load(ROOT / "references" / f"{name}.py")
    chosen = [case for case in margin.cases(reference, dtype) if case.id == QUICK[name, dtype]]
    rows = margin.measure(reference, dtype, chosen, ("test", "again"))
    assert 5 <= len(rows)
    assert [] == [(row.variant, row.largest) for row in rows if not row.right]
