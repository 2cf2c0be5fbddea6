"""What a candidate says of the results that it keeps: where they lie, or why they must be copied."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernelci.workbench.protocol import Spots, TensorPlace, Workspace
from kernelci.workbench.serving import Elsewhere, Pool, Results

PLACE = {"y": TensorPlace(0, (4, 8), (8, 1), "float32")}
BEGIN = 1024


class Memory:
    """Stands for the arena; gives one piece after another of its workspace."""

    def __init__(self) -> None:
        self.bytes = torch.zeros(2**16, dtype=torch.uint8)
        self.address = self.bytes.data_ptr()
        self.next = BEGIN

    def take(self, *shape: int) -> torch.Tensor:
        """A tensor in the next 512 bytes."""
        self.next += 512
        return self.bytes[self.next - 512 :][: 4 * torch.Size(shape).numel()].view(torch.float32).view(shape)


def _results(memory: Memory, calls: list[Callable[[], Any]], outputs: dict[str, TensorPlace] = PLACE) -> Results:
    arena: Any = SimpleNamespace(address=memory.address)
    return Results(calls, outputs, Workspace(BEGIN, 2**15), arena)


def test_where_they_lie() -> None:
    memory = Memory()
    made = _results(memory, [lambda: memory.take(4, 8)] * 3)
    made.run()
    assert {"y": Spots((1024, 1536, 2048), (4, 8), (8, 1), "float32")} == made.settle()


def test_strides_are_their_own() -> None:
    memory = Memory()
    made = _results(memory, [lambda: memory.take(8, 4).T])
    made.run()
    assert (1, 4) == made.settle()["y"].strides


def test_several_outputs() -> None:
    memory = Memory()
    made = _results(memory, [lambda: (memory.take(4, 8), memory.take(4, 8))], PLACE | {"z": PLACE["y"]})
    made.run()
    assert [(1024,), (1536,)] == [spots.offsets for spots in made.settle().values()]


class Lazy(torch.Tensor):  # type: ignore[misc]
    """Might compute when it is looked at."""


def _same(memory: Memory) -> Callable[[], Any]:
    kept = memory.take(4, 8)
    return lambda: kept


def _of_several_kinds(memory: Memory) -> Callable[[], Any]:
    kinds = iter([memory.take(4, 8), memory.take(8, 4).T])
    return lambda: next(kinds)


UNFIT: dict[str, Callable[[Memory], Callable[[], Any]]] = {
    "elsewhere": lambda memory: lambda: torch.zeros(4, 8),
    "before the region": lambda memory: lambda: memory.bytes[:128].view(torch.float32).view(4, 8),
    "the same for all": _same,
    "another shape": lambda memory: lambda: memory.take(8, 4),
    "another dtype": lambda memory: lambda: memory.take(4, 8).view(torch.int32),
    "several layouts": _of_several_kinds,
    "a subclass": lambda memory: lambda: memory.take(4, 8).as_subclass(Lazy),
    "nothing": lambda memory: lambda: None,
    "another name": lambda memory: lambda: {"z": memory.take(4, 8)},
}


@pytest.mark.parametrize("kind", UNFIT)
def test_unfit(kind: str) -> None:
    memory = Memory()
    made = _results(memory, [UNFIT[kind](memory)] * 2)
    made.run()
    with pytest.raises(Elsewhere):
        made.settle()


def test_unmoved() -> None:
    memory = Memory()
    made = _results(memory, [lambda: memory.take(4, 8)] * 40)
    made.run()
    made.settle()
    memory.next = BEGIN
    made.run()
    assert {} == made.moved()


def test_moved() -> None:
    memory = Memory()
    made = _results(memory, [lambda: memory.take(4, 8)] * 20)
    made.run()
    made.settle()
    made.run()
    assert BEGIN + 20 * 512 == made.moved()["y"].offsets[0]


def test_something_is_done_after_each() -> None:
    memory, done = Memory(), []
    _results(memory, [lambda: memory.take(4, 8)] * 3).run(lambda: done.append(memory.next))
    assert [1536, 2048, 2560] == done


@pytest.mark.skipif(torch.cuda.is_available(), reason="here torch takes an allocator")
def test_a_torch_that_takes_no_allocator() -> None:
    with pytest.raises(Elsewhere, match="takes no allocator"):
        Pool(0, 2**20)


def test_only_the_last_series_holds_its_results() -> None:
    memory, other = Memory(), Memory()
    made, later = (_results(one, [lambda one=one: one.take(4, 8)] * 3) for one in (memory, other))
    held = []
    for one in (made, later, made):
        one.run()
        held.append((len(made._kept), len(later._kept)))
    assert [(3, 0), (0, 3), (3, 0)] == held
