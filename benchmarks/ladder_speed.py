"""How long kernelci itself takes: commands, compiling the catalog, `watch`, and on a GPU host the ladder.

    python benchmarks/ladder_speed.py [--write]

Prints a Markdown table; --write puts it into docs/measurements.md.
"""

import argparse
import datetime
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import sections

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "kernelci"]
REPEATS = 5
SAVES = 6
WARMING = 2  # the first saves find processes that still import


class Figure(NamedTuple):
    """One line of the table."""

    what: str
    found: str
    goal: str


def main() -> int:
    """Measure, print, and with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md")
    write = parser.parse_args().write
    figures = [*commands(), *compiling(), *watching(), *(ladder() if gpu() else ())]
    text = table(figures)
    print(text)
    if write:
        sections.write("ladder_speed", text)
    return 0


def table(figures: list[Figure]) -> str:
    """Heading, machine, command, and a line for each figure."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    lines = [
        f"## kernelci itself, {today}",
        "",
        machine(),
        "",
        f"    python benchmarks/{Path(__file__).name} --write",
        "",
        "| what | figure | goal |",
        "| :-- | --: | --: |",
    ]
    return "\n".join([*lines, *(f"| {what} | {found} | {goal} |" for what, found, goal in figures), ""])


def machine() -> str:
    """The machine in one line."""
    model = next((line for line in cpu_lines() if line.startswith("model name")), ": unknown CPU")
    load = os.getloadavg()[0]
    parts = [f"{len(os.sched_getaffinity(0))} cores of {model.partition(':')[2].strip()}", gpu() or "no GPU"]
    return f"{' · '.join(parts)} · Python {platform.python_version()} · load before {load:.1f}."


def cpu_lines() -> list[str]:
    """What Linux says of its processors."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def gpu() -> str:
    """The GPU's name, or nothing."""
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return ""
    from kernelci.workbench.device import find

    return find().name


def run(*arguments: str, cache: Path | None = None) -> tuple[float, float]:
    """Wall and CPU seconds of a command in this repository, children included; it must succeed."""
    environment = dict(os.environ) | ({"KERNELCI_CACHE": str(cache)} if cache else {})
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH", "")]))
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([*COMMAND, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands() -> Iterator[Figure]:
    """CPU seconds of what must be quick."""
    for argument in ("--help", "list"):
        run(argument)
        found = min(run(argument)[1] for _ in range(REPEATS))
        yield Figure(f"`kernelci {argument}`, CPU time, best of {REPEATS}", f"{found:.3f} s", "0.15 s")


def compiling() -> Iterator[Figure]:
    """The whole catalog compiled for its targets."""
    yield from twice("compile", "whole catalog compiled for its targets", "90 s on two cores", "5 s")


def ladder() -> Iterator[Figure]:
    """The whole ladder; only where a GPU is."""
    yield from twice("run", "whole ladder, twelve kernels", "", "30 s")


def twice(command: str, what: str, cold_goal: str, warm_goal: str) -> Iterator[Figure]:
    """Cold and warm, with a cache of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for state, goal in (("cold", cold_goal), ("warm", warm_goal)):
            wall, _ = run(command, "--out", f"{folder}/out", cache=Path(folder, "cache"))
            yield Figure(f"{what}, {state} cache", f"{wall:.1f} s", goal)


def watching() -> Iterator[Figure]:
    """From a save to its answer."""
    for name in ("softmax/triton", "softmax/cutedsl"):
        times = answer_times(name)
        text = f"{statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})"
        yield Figure(f"`kernelci watch {name}`, median of {len(times)} answers once warm", text, "1 s")


def answer_times(name: str) -> list[float]:
    """Seconds from each save of a copy of the kernel to its answer."""
    from kernelci.watching import answers

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        path = copied(name, root)
        os.environ["KERNELCI_CACHE"] = str(root / "cache")
        given = answers(root, name)
        next(given)
        times = [timed(lambda: next(given), path, number) for number in range(SAVES)]
        given.close()
    return times[WARMING:]


def timed(answer: Callable[[], object], path: Path, number: int) -> float:
    """Save, and wait for the answer."""
    path.write_text(f"{path.read_text(encoding='utf-8')}\n# save {number}\n", encoding="utf-8")
    began = time.monotonic()
    answer()
    return time.monotonic() - began


def copied(name: str, root: Path) -> Path:
    """A project of one kernel in `root`; the kernel's file."""
    reference, _, stem = name.partition("/")
    shutil.copytree(ROOT / "references", root / "references", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "kernels" / reference).mkdir(parents=True)
    for path in (ROOT / "kernels" / reference).glob(f"{stem}.*"):
        shutil.copy(path, root / "kernels" / reference)
    return root / "kernels" / reference / f"{stem}.py"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
