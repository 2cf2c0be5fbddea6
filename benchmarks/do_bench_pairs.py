"""What `triton.testing.do_bench` says of base against head where both are the same: medians, one after the other.

    python benchmarks/do_bench_pairs.py [KERNELS…]

Needs a GPU. Each kernel has a process of its own, as in benchmarks/kernels_speed.py: all compile at once, then they
are timed one after the other. benchmarks/record_blocks.py puts the pairs beside the blocks of the same rows.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import kernels_speed

from kernelci import catalog, config
from kernelci.catalog import Catalog

ROOT = Path(__file__).resolve().parents[1]
PAIRS = 4
READY_S, TIMED_S = 60.0, 30.0
Medians = dict[str, list[tuple[float, float]]]


class Child(kernels_speed.Child):
    """One kernel's process."""

    SCRIPT = Path(__file__).resolve()


def taken(found: Catalog, rows: Mapping[str, Sequence[str]], meanwhile: Callable[[], object] = lambda: None) -> Medians:
    """Pairs of medians, ns, by "kernel case", of these cases of these kernels (none named: all bench cases).

    `meanwhile` is done while they compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        children = [Child(kernel, Path(folder)) for kernel in found.select(tuple(rows))]
        deadline = time.monotonic() + READY_S
        meanwhile()
        for child in [one for one in children if one.wait(deadline)]:
            child.go(time.monotonic() + TIMED_S)
        said = [row for child in children for row in child.close()]
    for row in said:
        if "error" in row:
            print(f"do_bench: {row['kernel']} left out: {row['error']}")
    return {
        f"{row['kernel']} {row['case']}": [(base, head) for base, head in row["pairs"]]
        for row in said
        if "pairs" in row and row["case"] in (rows[row["kernel"]] or (row["case"],))
    }


def child(name: str) -> int:
    """Compile for every case, say so, wait for `go`, time, answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    found = catalog.scan(ROOT, config.load(ROOT))
    (kernel,) = found.select((name,))
    entry, calls = kernels_speed.prepared(kernel, found.references[kernel.reference])
    for _, make in calls:
        kernels_speed.once(entry, make())
    print("ready", file=answers, flush=True)
    if sys.stdin.readline() != "go\n":
        return 1
    rows = [{**row, "pairs": pairs_of(entry, make())} for row, make in calls]
    print(json.dumps(rows), file=answers, flush=True)
    return 0


def pairs_of(entry: Callable[..., Any], values: dict[str, Any]) -> list[tuple[float, float]]:
    """Medians one after the other, ns, two by two."""
    from triton.testing import do_bench

    medians = [1e6 * float(do_bench(lambda: entry(**values), return_mode="median")) for _ in range(2 * PAIRS)]
    return list(zip(medians[::2], medians[1::2], strict=True))


def main() -> int:
    """Print how far head is from base by each pair."""
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2])
    found = catalog.scan(ROOT, config.load(ROOT))
    rows: dict[str, Sequence[str]] = {kernel.name: () for kernel in found.select(tuple(sys.argv[1:]))}
    for row, pairs in taken(found, rows).items():
        print(row, " ".join(f"{head / base - 1:+.1%}" for base, head in pairs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
