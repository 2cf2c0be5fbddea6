"""Lanes: who is free takes what comes next."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")


def spread(items: Iterable[Item], lanes: Sequence[Callable[[Item], None]]) -> None:
    """Give each item to one lane, in their order, and wait; raises what a lane raises.

    After that, or an interrupt, no further item begins. What then still runs is not waited for: its zygote ends it.
    """
    waiting = deque(items)
    used = lanes[: len(waiting)]
    if not used:
        return

    def serve(work: Callable[[Item], None]) -> None:
        while True:
            try:
                item = waiting.popleft()
            except IndexError:
                return
            work(item)

    threads = ThreadPoolExecutor(len(used), thread_name_prefix="lane")
    try:
        ended, _ = wait([threads.submit(serve, work) for work in used], return_when=FIRST_EXCEPTION)
        for future in ended:
            future.result()
    finally:
        waiting.clear()
        threads.shutdown(wait=False, cancel_futures=True)
