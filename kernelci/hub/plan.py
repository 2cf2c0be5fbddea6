"""Shards of a change's kernels, balanced by how long each took in an earlier run: a matrix for a workflow."""

import heapq
import secrets
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelci import catalog, config
from kernelci.errors import ConfigError
from kernelci.git import Repository
from kernelci.hub import judge
from kernelci.model import Report

# What a kernel takes that no earlier run has seen, where nothing at all is known.
UNKNOWN_S = 60.0
DAY_S = 86_400.0
MAX_SHARDS = 256  # of a matrix on GitHub


def kernels_of(project: Path, base: str = "", head: str = "") -> tuple[str, ...]:
    """The kernels that a change touches, or with no base all of the project. Raises ConfigError."""
    if not base:
        project = project.resolve()
        return tuple(kernel.name for kernel in catalog.scan(project, config.load(project)).kernels)
    with tempfile.TemporaryDirectory(prefix="kernelci-plan-") as folder:
        judged = judge.assemble(Repository(project), base, head or "HEAD", Path(folder) / "tree")
    return (*judged.kernels, *(kernel.name for kernel in judged.unjudged))


def durations(report: Report | None) -> dict[str, float]:
    """Seconds per kernel in an earlier report, which nobody vouches for: none is below zero or beyond a day."""
    if report is None:
        return {}
    found = {kernel.name: sum(rung.duration_s for rung in kernel.rungs) for kernel in report.kernels}
    return {name: min(max(seconds, 0.0), DAY_S) for name, seconds in found.items()}


def shards(kernels: Sequence[str], count: int, known: Mapping[str, float]) -> list[tuple[list[str], float]]:
    """At most `count` shards, none of them empty, with their expected seconds: the longest kernels first, each to the
    shard that has least to do. Raises ConfigError for a count that no matrix can have."""
    if not 1 <= count <= MAX_SHARDS:
        raise ConfigError(f"{count} shards", hint=f"between 1 and {MAX_SHARDS}")
    usual = statistics.median([known[name] for name in kernels if name in known] or [UNKNOWN_S])
    order = sorted(kernels, key=lambda name: (-known.get(name, usual), name))
    # Of shards with equally much to do the one with fewer kernels comes first, so that none stays empty.
    heap: list[tuple[float, int, int, list[str]]] = [(0.0, 0, index, []) for index in range(min(count, len(order)))]
    for name in order:
        seconds, length, index, names = heapq.heappop(heap)
        heapq.heappush(heap, (seconds + known.get(name, usual), length + 1, index, [*names, name]))
    return [(sorted(names), seconds) for seconds, _, _, names in sorted(heap, key=lambda shard: shard[2])]


def matrix(kernels: Sequence[str], count: int, earlier: Report | None = None, seed: str = "") -> dict[str, Any]:
    """`{"include": [...]}` with one entry per shard; all of them draw with the same seed, or they can't be merged."""
    found = shards(kernels, count, durations(earlier))
    seed = seed or secrets.token_hex(8)
    return {
        "include": [
            {"shard": index, "of": len(found), "seed": seed, "kernels": names, "expected_s": round(seconds, 1)}
            for index, (names, seconds) in enumerate(found, start=1)
        ]
    }
