"""A process that waits for its turn, with the imports that torch.compile needs made beside the earlier rungs."""

import threading

from kernelci.errors import RunnerBroken
from kernelci.workbench.process import Candidate, Ended
from kernelci.workbench.protocol import DeadlinePassed, Refused, Warm
from kernelci.workbench.session import Forker

WARM_S = 120.0


class Waiting:
    """A forker whose next candidate is there already, and has made its imports."""

    def __init__(self, forker: Forker) -> None:
        self._forker = forker
        self._lock = threading.Lock()
        self._candidate: Candidate | None = None

    def prepare(self, memory_bytes: int = 0) -> None:
        """Fork it and let it import what torch.compile needs; what goes wrong is met again by whoever needs it."""
        try:
            candidate = self._forker.fork(None, memory_bytes)
        except RunnerBroken:
            return
        try:
            candidate.ask(Warm(), WARM_S)
        except (DeadlinePassed, Refused, Ended, RunnerBroken):
            candidate.close()
            return
        self.close()
        with self._lock:
            self._candidate = candidate

    def fork(self, arena_fd: int | None = None, memory_bytes: int = 0) -> Candidate:
        """The one that waits; where there is none, or it would need an arena that is a file, a fresh one."""
        if arena_fd is None:
            with self._lock:
                candidate, self._candidate = self._candidate, None
            if candidate is not None and not candidate.ended:
                return candidate
            if candidate is not None:
                candidate.close()
        return self._forker.fork(arena_fd, memory_bytes)

    def close(self) -> None:
        """End the one that waits."""
        with self._lock:
            candidate, self._candidate = self._candidate, None
        if candidate is not None:
            candidate.close()
