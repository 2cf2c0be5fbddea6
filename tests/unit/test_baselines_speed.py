"""The table of benchmarks/baselines_speed.py."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from kernelci.reference import load as load_reference
from tests.conftest import load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, with those that it imports."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return load(ROOT / "benchmarks" / "baselines_speed.py", "baselines_speed")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_a_line(script: ModuleType) -> None:
    took = script.Took(2.2, 0.011, (1.02, 0.061), 14)
    assert "| softmax | both | 2.2 | 0.01 | 1.02 + 0.06 | 14 |" == script.line("softmax", "both", took)


def test_what_was_not_done_is_left_out(script: ModuleType) -> None:
    took = script.Took(0.0, 0.011, (1.02,), 0)
    assert "| softmax | cold |  | 0.01 | 1.02 |  |" == script.line("softmax", "cold", took)


def test_the_smallest_bench_cases(script: ModuleType) -> None:
    reference = load_reference(ROOT / "references" / "softmax.py")
    assert ["64x1024-fp16", "8192x256-fp32"] == [case.id for case in script.smallest(reference, 2)]
