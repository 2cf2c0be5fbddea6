"""A made-up year as a history's folder, and its dashboard: `python benchmarks/nightly_year.py FOLDER [--site SITE]`.

The nights are those of benchmarks/nightly_detection.py (whose head says what is in them) as records: 25 kernels of 8
cases on 3 GPUs. Each of its known steps has the event that a paired measurement would have left. With --site the
dashboard is built too, and timed.
"""

import argparse
import datetime
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import nightly_detection as nights

from kernelci import history
from kernelci.reasons import Outcome

FIRST = datetime.date(2025, 12, 1)
GPUS = ("NVIDIA H200", "NVIDIA A100-SXM4-80GB", "NVIDIA B200")
DSLS = {"triton": "triton 3.6.0", "tilelang": "tilelang 0.1.15", "cutedsl": "nvidia-cutlass-dsl 4.8.1", "cuda": ""}
REFERENCES = ("softmax", "rmsnorm", "matmul", "attention", "rope", "layernorm", "gelu")
CASES = 8


def kernel(row: int) -> str:
    """The name of a row's kernel."""
    number = row // CASES
    return f"{REFERENCES[number // len(DSLS)]}/{list(DSLS)[number % len(DSLS)]}"


def case(row: int) -> str:
    """The name of a row's case."""
    return f"{2 ** (8 + row % CASES)}x8192-bf16"


def write(folder: Path, seed: int = 5, count: int = nights.NIGHTS, rows: int = nights.ROWS) -> None:
    """Write the year into an empty folder: a file for each month and GPU, and one with the events of each GPU."""
    for number, name in enumerate(GPUS):
        gpu = nights.simulate(1000 * seed + number, count, rows)
        lines = [(night, measures(gpu, night, name)) for night in range(count)]
        by_month: dict[str, list[history.Measure]] = {}
        for night, found in lines:
            by_month.setdefault(f"{day(night):%Y-%m}", []).extend(found)
        for month, found in by_month.items():
            put(folder, *history.month_file(month, history.slug(name), history.encode(found)))
        events = known(gpu, name, count)
        if events:
            put(folder, *history.event_file(events))


def put(folder: Path, path: str, data: bytes) -> None:
    """Write one file of the history."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)


def day(night: int) -> datetime.date:
    """The date of a night."""
    return FIRST + datetime.timedelta(days=night)


def commit(night: int) -> str:
    """The commit of a night."""
    return history.digest(str(night).encode()) * 2 + "0" * 8


def measures(gpu: nights.Gpu, night: int, name: str) -> list[history.Measure]:
    """One night's records; a dead one's have no time."""
    date, driver = day(night), f"58{gpu.segments[night]}.159.04"
    slow = float(np.exp(gpu.probe[night]))
    found = []
    for row, value in enumerate(gpu.values[:, night]):
        alive = not np.isnan(value)
        ns = float(f"{np.exp(value):.6g}") if alive else None
        start = float(np.exp(np.nanmedian(gpu.values[row, :20])))
        share = (0.5 + 0.45 * (row % 11) / 11) * start / ns if ns else None
        flops = share and share * 7.1e14 * (0.1 + row % CASES / CASES)
        found.append(
            history.Measure(
                date, f"{date}T02:00:00+00:00", kernel(row), Outcome.PASSED if alive else Outcome.INVALID, case(row),
                "" if alive else "clocks-disagree", commit(night), f"https://example.org/actions/runs/{night}", name,
                "", "sm_90a", driver, "13.0", DSLS[kernel(row).partition("/")[2]], "max 1980 MHz, 700 W", "",
                ns, ns and ns * 0.997, ns and ns * 1.003, None, ns and ns + 9000, share and float(f"{share:.4g}"),
                flops and flops / (20 * 2 ** (row % CASES)), flops, 55.0 + row % 7, 4.27e12 / slow,
                7.1e14 / slow, *built(gpu, row, night),
            )
        )  # fmt: skip
    return found


def built(gpu: nights.Gpu, row: int, night: int) -> tuple[float, ...]:
    """Registers, stack, shared memory, code and compile time of a row, and its error over the bound: made up, too."""
    steps = sum(each.at <= night for each in gpu.truths[row] if each.nights == 1 and row % 3)
    return (
        32 + 8 * (row % 9) + 8 * steps,
        16.0 * (steps > 1),
        1024.0 * (row % 5),
        4096 + 256 * (row % 7 + steps),
        2.5,
        0.4,
    )


def known(gpu: nights.Gpu, name: str, count: int) -> list[history.Event]:
    """What paired measurements would have said of the year's steps."""
    found = []
    for row, truths in enumerate(gpu.truths):
        for each in truths:
            if each.nights > 1 or each.at + 2 >= count:
                continue
            good, bad = commit(each.at - 1), commit(each.at + 2)
            found.append(
                history.Event(
                    day(each.at + 2), "remeasured", kernel(row), case(row), name, day(each.at), good, bad, "SLOWER",
                    each.size, each.size - 0.002, each.size + 0.002, each.size,
                )
            )  # fmt: skip
    return found


def main() -> None:
    """Write the year, and the dashboard if it is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--site", type=Path)
    options = parser.parse_args()
    write(options.folder)
    if options.site:
        from kernelci.nightly import dashboard

        began = time.perf_counter()
        pages = dashboard.build(options.folder, options.site, "octo-org/kernels")
        size = pages[0].stat().st_size
        print(f"{len(pages)} pages in {time.perf_counter() - began:.1f} s; the overview has {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
