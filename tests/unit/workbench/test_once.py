"""Several threads want a value and one makes it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelci.workbench.once import Once

PATIENCE_S = 30.0


def test_a_value_is_made_once_for_all_who_ask_together() -> None:
    once: Once[str, int] = Once()
    made: list[int] = []
    together = threading.Barrier(4)

    def make() -> int:
        made.append(1)
        return len(made)

    def ask() -> int:
        together.wait(PATIENCE_S)
        return once.get("a", make)

    with ThreadPoolExecutor(4) as threads:
        found = [future.result() for future in [threads.submit(ask) for _ in range(4)]]
    assert ([1, 1, 1, 1], [1]) == (found, made)


def test_another_key_does_not_wait() -> None:
    once: Once[str, str] = Once()
    begun, over = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert over.wait(PATIENCE_S)
        return "slow"

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(once.get, "a", slow)
        assert begun.wait(PATIENCE_S)
        assert "quick" == once.get("b", lambda: "quick")
        over.set()
        assert "slow" == waiting.result(PATIENCE_S)


def test_after_a_failure_the_next_one_tries_again() -> None:
    once: Once[str, int] = Once()
    with pytest.raises(ZeroDivisionError):
        once.get("a", lambda: 1 // 0)
    assert 2 == once.get("a", lambda: 2)
