"""Progress while the ladder is climbed: a table on a terminal, a line for each result elsewhere."""

import contextlib
import os
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live as Region
from rich.table import Table

from kernelci import inert, units
from kernelci.model import RungResult
from kernelci.reasons import REASONS, Outcome
from kernelci.reporters.console import encodable, ladder


class Named(Protocol):
    """What progress needs of a kernel."""

    @property
    def name(self) -> str:
        """The kernel's name."""


@contextlib.contextmanager
def unread() -> Iterator[None]:
    """What is printed within is lost where nobody reads it any more (`| head`), and nothing else is."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        lose_output()


def lose_output() -> None:
    """Let what standard output still holds go nowhere, else Python says at its end that it could not write it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class Live:
    """The ladder's progress: `Live()(kernel, result)` after each rung. Where it can't be written, the run goes on.

    A table that renews itself on a terminal, from the first result until `close` (or the end of a `with`); elsewhere
    one plain line per result: `softmax/triton  compile  PASSED  7.8 s  9 rows`.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(markup=False, emoji=False, highlight=False)
        self._region: Region | None = None
        self._climbs: dict[str, list[RungResult]] = {}
        self._lost = False

    def __call__(self, kernel: Named, result: RungResult) -> None:
        """Show one more result."""
        if not self._lost:
            try:
                self._show(kernel, result)
            except OSError:
                self._lost = True

    def _show(self, kernel: Named, result: RungResult) -> None:
        if not self._console.is_terminal:
            self._console.file.write(encodable(plain(kernel.name, result) + "\n", self._console.file))
            self._console.file.flush()
            return
        self._climbs.setdefault(kernel.name, []).append(result)
        if self._region is None:
            self._region = Region(console=self._console, transient=True, auto_refresh=False)
            self._region.start()
        self._region.update(self._table(), refresh=True)

    def _table(self) -> Table:
        """The kernels that fit on the screen, the latest of them."""
        room = max(self._console.height - 3, 1)
        return ladder(list(self._climbs.items())[-room:])

    def close(self) -> None:
        """Take the table off the terminal; the final report shows all of it."""
        region, self._region = self._region, None
        if region is not None:
            with contextlib.suppress(OSError):
                region.stop()

    def __enter__(self) -> Self:
        """Nothing is shown before the first result."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave the terminal clean, also after an error."""
        self.close()


def plain(kernel: str, result: RungResult) -> str:
    """One result on one line, for logs."""
    parts = [inert.line(kernel), inert.line(result.rung), result.outcome.value]
    if result.outcome is not Outcome.SKIPPED:
        parts.append(units.elapsed(result.duration_s))
    if result.rows:
        parts.append(f"{len(result.rows)} row{'' if len(result.rows) == 1 else 's'}")
    if result.finding is not None:
        parts.append(REASONS[result.finding.reason].title)
    return "  ".join(parts)
