"""Values that several threads want and one of them makes."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Once(Generic[Key, Value]):
    """Values by key, each made by whoever asks first; others who ask for the same key wait for it, and for no other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[Key, Future[Value]] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value. What `make` raises is raised to all who wait; who asks after that tries again."""
        with self._lock:
            known = key in self._made
            future = self._made.setdefault(key, Future())
        if not known:
            try:
                future.set_result(make())
            except BaseException as error:
                with self._lock:
                    del self._made[key]
                future.set_exception(error)
        return future.result()
