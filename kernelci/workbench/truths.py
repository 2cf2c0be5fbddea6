"""What is true of a run's cases and draws: drawn once, shared by the kernels of a reference, bounded in bytes."""

import threading
from collections import OrderedDict
from pathlib import Path

from kernelci.reference import Case, Reference
from kernelci.workbench import controls
from kernelci.workbench.drawn import Drawn, make

KEPT_BYTES = {"cpu": 2**30, "cuda": 16 * 2**30}


class Truths:
    """Draws and oracles by reference, case and draw."""

    def __init__(self, device: str, seed: str) -> None:
        self._device = device
        self._seed = seed
        self._kept: OrderedDict[tuple[str, str, str], Drawn] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._examined: dict[str, controls.Weak | None] = {}

    def get(self, reference: Reference, case: Case, draw: str) -> Drawn:
        """Draw, and ask the oracle. Raises ReferenceFailed."""
        with self._lock:
            return self._get(reference, case, draw)

    def _get(self, reference: Reference, case: Case, draw: str) -> Drawn:
        key = (reference.name, f"{case.kind} {case.id}", draw)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        drawn = make(reference, case, draw, self._seed, self._device)
        self._kept[key] = drawn
        self._bytes += drawn.bytes
        while self._bytes > KEPT_BYTES[self._device.partition(":")[0]] and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].bytes
        return drawn

    def weakness(self, reference: Reference, cache: Path) -> controls.Weak | None:
        """What the controls found wrong with a reference, or None; examined once. Raises ReferenceFailed."""
        with self._lock:
            if reference.name not in self._examined:
                self._examined[reference.name] = _weakness(reference, self._device, cache)
            return self._examined[reference.name]


def _weakness(reference: Reference, device: str, cache: Path) -> controls.Weak | None:
    try:
        controls.check(reference, device, cache)
    except controls.Weak as weak:
        return weak
    return None
