"""What is true of a run's cases and draws: drawn once, shared by the kernels of a reference, bounded in bytes."""

import threading
from collections import OrderedDict
from concurrent.futures import Future
from pathlib import Path

import torch

from kernelci.reference import Case, Reference
from kernelci.workbench import controls
from kernelci.workbench.drawn import Drawn, make
from kernelci.workbench.once import Once

KEPT_BYTES = {"cpu": 2**30, "cuda": 16 * 2**30}
Key = tuple[str, str, str]


class Truths:
    """Draws and oracles by reference, case and draw, on one device. Who asks for one waits for that one alone."""

    def __init__(self, device: str, seed: str) -> None:
        self._device = device
        self._seed = seed
        self._kept: OrderedDict[Key, Future[Drawn]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._examined: Once[str, controls.Weak | None] = Once()

    def get(self, reference: Reference, case: Case, draw: str) -> Drawn:
        """Draw, and ask the oracle. Raises ReferenceFailed."""
        key = (reference.name, f"{case.kind} {case.id}", draw)
        with self._lock:
            known = key in self._kept
            future = self._kept.setdefault(key, Future())
            self._kept.move_to_end(key)
        if not known:
            self._make(future, key, reference, case)
        return future.result()

    def _make(self, future: "Future[Drawn]", key: Key, reference: Reference, case: Case) -> None:
        try:
            drawn = make(reference, case, key[2], self._seed, self._device)
        except BaseException as error:
            with self._lock:
                if self._kept.get(key) is future:
                    del self._kept[key]
            future.set_exception(error)
            return
        with self._lock:
            future.set_result(drawn)
            if self._kept.get(key) is future:  # else it was dropped while it was being made
                self._bytes += drawn.bytes
                self._shrink(key)

    def _shrink(self, newest: Key) -> None:
        """Drop what was asked for longest ago, but for the newest and what is still being made."""
        limit = KEPT_BYTES[self._device.partition(":")[0]]
        for key in list(self._kept):
            if self._bytes <= limit:
                return
            if key != newest and self._kept[key].done():
                self._bytes -= self._kept.pop(key).result().bytes

    def drop(self) -> None:
        """Forget every draw, so that their memory is free; what the controls found stays."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0
        if self._device != "cpu":
            torch.cuda.empty_cache()

    def weakness(self, reference: Reference, cache: Path) -> controls.Weak | None:
        """What the controls found wrong with a reference, or None; examined once. Raises ReferenceFailed."""
        return self._examined.get(reference.name, lambda: _weakness(reference, self._device, cache))


def _weakness(reference: Reference, device: str, cache: Path) -> controls.Weak | None:
    try:
        controls.check(reference, device, cache)
    except controls.Weak as weak:
        return weak
    return None
