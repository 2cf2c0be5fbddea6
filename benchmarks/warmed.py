"""Processes that have made torch.compile's imports before anybody waits for them, for scripts that measure."""

import time
from collections.abc import Callable

from kernelci.workbench.process import Candidate, Zygote
from kernelci.workbench.protocol import Warm
from kernelci.workbench.waiting import WARM_S


class Warmed:
    """Forks them from a zygote; `seconds` that took, and what is done with each `then`."""

    def __init__(self, zygote: Zygote, then: Callable[[Candidate], object] = lambda candidate: None) -> None:
        self._zygote = zygote
        self._then = then
        self.seconds = 0.0

    def fork(self, arena_fd: int | None = None, memory_bytes: int = 0) -> Candidate:
        """A fresh one."""
        began = time.monotonic()
        candidate = self._zygote.fork(arena_fd, memory_bytes)
        candidate.ask(Warm(), WARM_S)
        self._then(candidate)
        self.seconds = time.monotonic() - began
        return candidate
