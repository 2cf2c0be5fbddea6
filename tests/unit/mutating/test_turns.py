"""In which order mutants of several kernels are judged."""

from collections.abc import Sequence

import pytest

from kernelci.mutating.judging import in_turns


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([], []), ([[], []], []), ([["a1", "a2", "a3"], ["b1"], ["c1", "c2"]], ["a1", "b1", "c1", "a2", "c2", "a3"])],
)
def test_kernels_take_turns(rows: Sequence[Sequence[str]], expected: list[str]) -> None:
    assert expected == list(in_turns(rows))
