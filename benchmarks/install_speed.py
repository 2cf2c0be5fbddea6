"""How long the light install of W2 takes: what action.yml does for `publish`, into a fresh environment each time.

    python benchmarks/install_speed.py [--repeats N] [--write]

Without pip's cache, as on a hosted runner. Prints a Markdown table; --write puts it into docs/measurements.md.
"""

import argparse
import datetime
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import sections

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "github"
GOAL_S = 15.0


class Taken(NamedTuple):
    """One installation: by the clock, and of the processor, in seconds; packages, and bytes on disk."""

    wall_s: float
    cpu_s: float
    packages: int
    size_bytes: int


def install(folder: Path) -> Taken:
    """Install into a new environment below a folder, by the very script that the action runs."""
    environ = {**os.environ, "KERNELCI_VENVS": str(folder), "KERNELCI_ACTION_EXTRAS": EXTRAS, "PIP_NO_CACHE_DIR": "1"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-I", str(ROOT / "kernelci" / "hub" / "installing.py")]
    done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    python = Path(done.stdout.strip())
    subprocess.run([python, "-I", "-m", "kernelci", "publish", "--help"], check=True, capture_output=True)
    files = [path for path in python.parents[1].rglob("*") if path.is_file() and not path.is_symlink()]
    packages = sum(path.name == "METADATA" for path in files)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(wall, cpu, packages, sum(path.stat().st_size for path in files))


def table(found: list[Taken], load: float) -> str:
    """The measurement as Markdown."""
    wall, cpu = [each.wall_s for each in found], [each.cpu_s for each in found]
    median, today = statistics.median(wall), datetime.datetime.now(datetime.UTC).date()
    where = f"{os.cpu_count()} cores, Python {platform.python_version()}, load before {load:.1f}"
    by_clock = f"{median:.1f} s | {min(wall):.1f} to {max(wall):.1f} s | {GOAL_S:.0f} s | {median / GOAL_S:.0%}"
    lines = [
        "## The light install",
        "",
        f"{today}, `python benchmarks/install_speed.py --write`: `kernelci[{EXTRAS}]` into a fresh environment,",
        f"pip without a cache, {len(found)} times; {where}.",
        "",
        "| what | median | fastest to slowest | goal | share of the goal |",
        "| :-- | --: | --: | --: | --: |",
        f"| by the clock | {by_clock} |",
        f"| of the processor | {statistics.median(cpu):.1f} s | {min(cpu):.1f} to {max(cpu):.1f} s | | |",
        "",
        f"{found[0].packages} packages, {found[0].size_bytes / 2**20:.0f} MiB on disk.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    load, found = os.getloadavg()[0], []
    for _ in range(asked.repeats):
        with tempfile.TemporaryDirectory() as folder:
            found.append(install(Path(folder)))
        print(found[-1], file=sys.stderr)
    text = table(found, load)
    print(text)
    if asked.write:
        sections.write("install_speed", text)


if __name__ == "__main__":
    main()
