"""Windows of what is trusted: their values are drawn once, and laid again where calls overwrite them."""

from collections.abc import Callable, Iterator

import pytest
import torch

from kernelci.reference import Reference
from kernelci.workbench.arena import Arena
from kernelci.workbench.unjudged import Unjudged

TEXT = """
def cases():
    yield bench("a few", rows=4, cols=64, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
"""


@pytest.fixture
def arena() -> Iterator[Arena]:
    """A few slots."""
    made = Arena("cpu", 2**18)
    yield made
    made.close()


def _bank(reference: Reference, arena: Arena) -> Unjudged:
    return Unjudged(reference, reference.cases()[0], arena, 4, "a seed")


def test_values_are_drawn_once(written: Callable[[str], Reference], arena: Arena) -> None:
    bank = _bank(written(TEXT), arena)
    bank.deal(2)
    few = bank.slots_of("x")[:2].clone()
    bank.deal(4)
    all_of_them = bank.slots_of("x").clone()
    bank.deal(2)
    bank.deal()
    same = torch.equal(few, all_of_them[:2])
    assert (False, True) == (same, torch.equal(all_of_them, bank.slots_of("x")))


def test_values_that_calls_overwrite_are_laid_again(written: Callable[[str], Reference], arena: Arena) -> None:
    bank = _bank(written(TEXT), arena)
    bank.deal()
    before = bank.slots_of("x").clone()
    bank.slots_of("x").zero_()
    bank.deal()
    assert torch.equal(before, bank.slots_of("x"))
