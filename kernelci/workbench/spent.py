"""Where a rung's seconds went: those of the benchmark, and of rungs that call a kernel on many draws."""

import contextlib
import time
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Part = Literal[
    "calibrating",
    "setting_up",
    "starting",
    "readying",
    "drawing",
    "calls",
    "windows",
    "checking",
    "probing",
    "judging",
    "ending",
    "auditing",
    "baselines",
]
_SAID: dict[str, str] = {
    "setting_up": "setting up and tuning",
    "starting": "starting processes",
    "readying": "getting windows ready",
    "probing": "probing the clock",
    "ending": "ending processes",
}


class Spent(Struct):
    """Seconds by what they went into; no second is in two parts."""

    calibrating: float = 0.0
    """And waiting for what is compiled, and asking whether there are ledgers."""
    setting_up: float = 0.0
    """The arena, each side's scout, and how many calls a window has."""
    starting: float = 0.0
    """Forks, contexts, imports."""
    readying: float = 0.0
    """First calls and graphs, in all processes of a contest at once."""
    drawing: float = 0.0
    """And, where calls are checked one by one, the oracle."""
    calls: float = 0.0
    windows: float = 0.0
    checking: float = 0.0
    probing: float = 0.0
    """The clock's own cost, and looking at the GPU's state."""
    judging: float = 0.0
    ending: float = 0.0
    auditing: float = 0.0
    baselines: float = 0.0

    @contextlib.contextmanager
    def during(self, part: Part) -> Iterator[None]:
        """Count the block's seconds to this part."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(part, time.monotonic() - began)

    def add(self, part: Part, seconds: float) -> None:
        """Count so many more seconds to this part."""
        setattr(self, part, getattr(self, part) + seconds)

    def text(self, whole: float, main: Part = "windows") -> str:
        """For the report: every part that took time, the share of the main one in the whole, and what no part names."""
        took = {part: float(getattr(self, part)) for part in self.__struct_fields__}
        share = f" ({took[main] / whole:.0%})" if whole else ""
        parts = [
            f"{_SAID.get(part, part)} {seconds:.1f}{share if part == main else ''}"
            for part, seconds in took.items()
            if round(seconds, 1) or part == main
        ]
        return f"seconds: {', '.join(parts)}, else {max(whole - sum(took.values()), 0.0):.1f}; in all {whole:.1f}"
