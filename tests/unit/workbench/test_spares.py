"""Processes of a side that start together before they are asked for."""

from collections.abc import Callable, Iterator

import pytest

from kernelci.errors import Stop
from kernelci.workbench.arena import Arena
from kernelci.workbench.contest import Opener, Spares

MakeOpener = Callable[..., Opener]
PLAIN = "import torch\ndef f(x, y):\n    torch.add(x, 1, out=y)\n"


@pytest.fixture
def spares(opener: MakeOpener) -> Iterator[tuple[Spares, Arena]]:
    """Two processes that start together, and an arena for them."""
    arena, made = Arena("cpu", 2**12), Spares(opener(PLAIN), 2)
    yield made, arena
    made.close()
    arena.close()


def test_the_first_processes_start_together_and_later_ones_when_they_are_needed(spares: tuple[Spares, Arena]) -> None:
    opened, arena = spares
    sessions = [opened(arena) for _ in range(3)]
    lives = [session.life for session in sessions]
    for session in sessions:
        session.close()
    assert ([1, 1, 0], 3) == (lives, len(set(map(id, sessions))))


def test_processes_that_nobody_asked_for_are_ended(spares: tuple[Spares, Arena]) -> None:
    opened, arena = spares
    opened(arena).close()
    (left,) = opened._left
    opened.close()
    assert 0 == left.life


def test_a_process_that_can_not_start_is_met_where_it_is_used(opener: MakeOpener) -> None:
    arena, opened = Arena("cpu", 2**12), Spares(opener("raise ValueError('no')"), 2)
    try:
        with pytest.raises(Stop, match="no"):
            opened(arena).start()
    finally:
        opened.close()
        arena.close()
