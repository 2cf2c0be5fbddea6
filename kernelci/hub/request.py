"""What to judge of a change, and how: what an action, a rehearsal and `kernelci judge` ask for."""

from pathlib import Path
from typing import Literal

from msgspec import Struct

Mode = Literal["compile", "run"]
Tier = Literal["pr", "full"]


class Request(Struct, frozen=True, kw_only=True):
    """Two commits of the repository at `project`, how to judge, and where the report goes."""

    project: Path
    base: str
    head: str
    out: Path
    mode: Mode = "run"
    tier: Tier = "pr"
    only: tuple[str, ...] = ()
    """Only these of the touched kernels: a shard's; empty: all."""
    seed: str = ""
    second: bool = False
    """Whether the head's own judge is heard too, in a sandbox: a referee whose word turns nothing green."""
    by: str = ""
    """Who allowed that."""
