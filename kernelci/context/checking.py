"""Checks for an agent that edits: precheck, compile and interpreter of one kernel, by processes that stay warm."""

import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kernelci import catalog, config
from kernelci.catalog import Kernel
from kernelci.model import KernelReport

if TYPE_CHECKING:
    from kernelci.court import Court

RUNGS = ("precheck", "compile", "run", "correctness")
USUAL_TARGET = "sm_90a"


class Checker:
    """Holds the processes of one project; made anew where its references or its options change."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._stack = ExitStack()
        self._court: Court | None = None
        self._stamp: object = None
        self._lock = threading.Lock()

    def check(self, name: str, target: str = "", rungs: tuple[str, ...] = RUNGS) -> KernelReport:
        """The kernel as it is now, on one target. Raises ConfigError for an unknown kernel, target or rung."""
        with self._lock:
            options = config.load(self.root)
            found = catalog.scan(self.root, options)
            kernel = found.one(name, "checked")
            return _answer(kernel, self._opened(found, options), target or _usual(kernel, options), rungs)

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            self._stack.close()
            self._court = None

    def _opened(self, found: catalog.Catalog, options: config.Config) -> "Court":
        from kernelci.ladder import Plan, opened

        references = [(str(path), path.stat().st_mtime_ns) for path in found.references.values()]
        stamp = (options, references)
        if self._court is None or self._stamp != stamp:
            self._stack.close()
            out = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelci-check-"))
            self._court = self._stack.enter_context(opened(found, options, Plan((), Path(out), tier="watch")))
            self._stamp = stamp
        return self._court


def _usual(kernel: Kernel, options: config.Config) -> str:
    known = kernel.card.targets if kernel.card and kernel.card.targets else options.targets
    return USUAL_TARGET if USUAL_TARGET in known or not known else known[0]


def _answer(kernel: Kernel, court: "Court", target: str, wanted: tuple[str, ...]) -> KernelReport:
    from kernelci.ladder import chosen, climb_one
    from kernelci.referee import KernelReferee
    from kernelci.rungs import ladder

    rungs = chosen(ladder(court.catalog.root / court.config.rungs), wanted)
    referee = KernelReferee(kernel, court, (target,))
    referee.start_compiling()
    try:
        return climb_one(referee, rungs, None)
    finally:
        referee.forget()
