"""The table of benchmarks/baselines_speed.py."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from kernelci.reference import load as load_reference

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def speed(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("baselines_speed")


def test_a_line(speed: ModuleType) -> None:
    took = speed.Took(2.2, 0.011, (1.02, 0.061), 14)
    assert "| softmax | both | 2.2 | 0.01 | 1.02 + 0.06 | 14 |" == speed.line("softmax", "both", took)


def test_what_was_not_done_is_left_out(speed: ModuleType) -> None:
    took = speed.Took(0.0, 0.011, (1.02,), 0)
    assert "| softmax | cold |  | 0.01 | 1.02 |  |" == speed.line("softmax", "cold", took)


def test_the_smallest_bench_cases(speed: ModuleType) -> None:
    reference = load_reference(ROOT / "references" / "softmax.py")
    assert ["64x1024-fp16", "8192x256-fp32"] == [case.id for case in speed.smallest(reference, 2)]
