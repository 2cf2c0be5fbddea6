"""What the GPU's tests climb is whole: pairs of a right and a wrong solution, of the backend that the name says."""

import difflib
from collections import Counter

import pytest

from kernelci.problems import defined_in
from tests.problems.kernelbench_gpu import BACKENDS, PROJECT, solutions

NAMES = sorted(solutions())


def test_how_many() -> None:
    pairs = Counter(name.partition("/")[2].partition("_")[0] for name in NAMES if name.endswith("_right"))
    assert {"triton": 29, "cuda": 7, "tilelang": 1, "cutedsl": 1} == dict(pairs)


def test_each_right_one_has_a_wrong_one() -> None:
    rights = {name.removesuffix("_right") for name in NAMES if name.endswith("_right")}
    assert rights == {name.removesuffix("_wrong") for name in NAMES if name.endswith("_wrong")}


@pytest.mark.parametrize("name", NAMES)
def test_backend(name: str) -> None:
    found = defined_in(solutions()[name])
    assert (True, BACKENDS[name.partition("/")[2].partition("_")[0]]) == (found.is_solution, found.backend)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_right")])
def test_a_wrong_one_differs_in_a_line_or_two(name: str) -> None:
    both = [solutions()[one].read_text(encoding="utf-8") for one in (name, f"{name.removesuffix('right')}wrong")]
    changed = [line for line in difflib.ndiff(*(text.splitlines() for text in both)) if line[0] in "+-"]
    assert 1 <= len(changed) <= 4


def test_all_belong_to_problems() -> None:
    problems = {path.stem for path in (PROJECT / "references").glob("*.py")}
    assert set() == {name.partition("/")[0] for name in NAMES} - problems
