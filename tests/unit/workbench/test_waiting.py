"""A process that waits, with its imports made: the next one that is asked for, where it still lives."""

from kernelci.errors import RunnerBroken
from kernelci.workbench.arena import Arena
from kernelci.workbench.process import Candidate, Zygote
from kernelci.workbench.protocol import Pack, Packed
from kernelci.workbench.waiting import Waiting


def test_the_process_that_waits_is_the_next_one_and_no_other(zygote: Zygote) -> None:
    waiting = Waiting(zygote)
    waiting.prepare()
    ready = waiting._candidate
    first, second = waiting.fork(), waiting.fork()
    try:
        assert (True, False, Packed) == (first is ready, second is ready, type(first.ask(Pack(), 30.0)))
    finally:
        first.close()
        second.close()


def test_one_that_ended_while_it_waited_is_replaced(zygote: Zygote) -> None:
    waiting = Waiting(zygote)
    waiting._candidate = gone = zygote.fork()
    gone.kill()
    fresh = waiting.fork()
    try:
        assert (True, Packed) == (gone.ended, type(fresh.ask(Pack(), 30.0)))
    finally:
        fresh.close()


def test_an_arena_that_is_a_file_needs_a_fresh_process(zygote: Zygote) -> None:
    waiting, arena = Waiting(zygote), Arena("cpu", 2**12)
    waiting._candidate = ready = zygote.fork()
    fresh = waiting.fork(arena.fd)
    try:
        assert (False, True) == (fresh is ready, waiting._candidate is ready)
    finally:
        fresh.close()
        waiting.close()
        arena.close()
    assert waiting._candidate is None


class _Gone:
    def fork(self, arena_fd: int | None = None, memory_bytes: int = 0) -> Candidate:
        raise RunnerBroken("the zygote is gone")


def test_nobody_waits_where_nothing_can_be_started() -> None:
    waiting = Waiting(_Gone())
    waiting.prepare()
    assert waiting._candidate is None
