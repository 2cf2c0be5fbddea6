"""How long comparing the catalog's dumps takes: with itself, and with other targets' code, where everything differs.

kernelci compile --out REPORT
python benchmarks/dumps_speed.py REPORT
"""

import sys
import time
from pathlib import Path

from msgspec.structs import replace

from kernelci.dumps import comparing, difference
from kernelci.dumps.specimen import Specimen, read

OTHER = {"sm_80": "sm_90a", "sm_90a": "sm_100a", "sm_100a": "sm_80"}


def turned(specimens: list[Specimen]) -> list[Specimen]:
    """The same builds, each in the place of another target's."""
    found = []
    for each in specimens:
        parts = each.place.split("/")
        parts[-2] = OTHER.get(parts[-2], parts[-2])
        found.append(replace(each, place="/".join(parts)))
    return found


def compare(base: list[Specimen], head: list[Specimen]) -> tuple[int, int, float]:
    """Pairs, lines of their differences, and seconds: causes, counts and both differences of each."""
    began = time.perf_counter()
    pairs, lines = comparing.paired(base, head).pairs, 0
    for old, new in pairs:
        if not comparing.compare(old, new).identical:
            lines += len(difference.of_sass(old.code(), new.code())) + len(difference.of_ptx(old.ptx, new.ptx))
    return len(pairs), lines, time.perf_counter() - began


def main() -> None:
    """Print a table."""
    began = time.perf_counter()
    specimens = read(Path(sys.argv[1]))
    reading = time.perf_counter() - began
    print("| what | pairs | lines that differ | time |\n| :-- | --: | --: | --: |")
    print(f"| reading a report's dumps | | | {reading:.2f} s |")
    for name, base in (("with itself", specimens), ("each build with another target's", turned(specimens))):
        pairs, lines, seconds = compare(base, specimens)
        print(f"| {name} | {pairs} | {lines:,} | {seconds:.1f} s |")


if __name__ == "__main__":
    main()
