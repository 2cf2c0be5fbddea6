"""How large the HTML report of 200 rows is, and how long a headless Chromium takes to open it.

python benchmarks/page_speed.py [--rows 200] [--times 9] [--write]

Needs chromium, chromedriver and selenium. A page is opened in a fresh tab from the disk; the time is the browser's own,
from the navigation's start to the end of the load event. With --write the table goes into docs/measurements.md.
"""

import argparse
import datetime
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import sections

from kernelci.model import SCHEMA_VERSION, Artifact, Environment, Metric, Report, Row, RungResult, Unit, Verdict
from kernelci.model import KernelReport as Kernel
from kernelci.reasons import Outcome
from kernelci.reporters import Context, html

KERNELS = 12
LINES = 400  # of each kernel's difference
LOAD = "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd - t.startTime"


def report(rows: int, folder: Path) -> Report:
    """So many bench rows over twelve kernels, each with a difference of machine code that lies in a folder."""
    each = rows // KERNELS + 1
    kernels = tuple(kernel(number, min(each, max(0, rows - number * each)), folder) for number in range(KERNELS))
    where = Environment("x86_64", "3.11", "NVIDIA H200", "sm_90a", "580.159.04", "bubblewrap")
    return Report(SCHEMA_VERSION, "0", "2026-11-30T00:00:00+00:00", 200.0, where, kernels)


def kernel(number: int, rows: int, folder: Path) -> Kernel:
    """One kernel with its times, their causes, and a difference."""
    name = f"reference{number}/triton"
    place = Path("dumps", name, "case", "sm_90a", "kernel.sass.diff")
    (folder / place).parent.mkdir(parents=True)
    text = "".join(
        f"{'+-'[line % 2]} LDG.E.128 R, desc[UR][R.64+{line:#x}]   // triton.py:{line}\n" for line in range(LINES)
    )
    (folder / place).write_text(text, encoding="utf-8")
    timed = RungResult("benchmark", Outcome.PASSED, 20.0, rows=tuple(row(line) for line in range(rows)))
    dumped = Row(Outcome.PASSED, "64x64-bf16", "sm_90a", notes=("likely slower: global loads 128 -> 32 bits wide",))
    dump = RungResult(
        "dump", Outcome.PASSED, 1.0, rows=(dumped,), artifacts=(Artifact(str(place), "sass.diff", len(text)),)
    )
    return Kernel(name, f"reference{number}", "triton", f"kernels/{name}.py", "0" * 64, (timed, dump))


def row(line: int) -> Row:
    """A case against its base."""
    time_ns = 12_300.0 * (1 + line % 50)
    delta = 0.03 * (line % 4 - 1)
    found = (
        Metric("time", time_ns, Unit.NANOSECONDS, "time", "cold", time_ns * 0.99, time_ns * 1.01),
        Metric("time_base", time_ns, Unit.NANOSECONDS, "base", "", time_ns * 0.99, time_ns * 1.01),
        Metric("time_head", time_ns * (1 + delta), Unit.NANOSECONDS, "head", "", time_ns, time_ns * 1.1),
        Metric("delta", delta, Unit.FRACTION, "delta", "", delta - 0.003, delta + 0.003),
        Metric("attained", 0.54, Unit.FRACTION, "bound by memory; go on"),
    )
    verdict = (Verdict.FASTER, Verdict.SAME, Verdict.SLOWER, Verdict.UNKNOWN)[line % 4]
    return Row(Outcome.PASSED, f"{64 + line}x2048-bf16", "sm_90a", metrics=found, verdict=verdict)


def opened(page: Path, times: int) -> list[float]:
    """Seconds until a page is loaded, so many times."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser: Any = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
    try:
        return [one(browser, page) for _ in range(times)]
    finally:
        browser.quit()


def one(browser: Any, page: Path) -> float:
    """Open it in a fresh tab."""
    browser.switch_to.new_window("tab")
    browser.get(page.as_uri())
    return float(browser.execute_script(LOAD)) / 1000


def main() -> None:
    """Print a table; exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.process_time()
        text = html.render(report(options.rows, folder), Context(files=folder))
        made = time.process_time() - began
        data = text.encode() if isinstance(text, str) else text
        (folder / "report.html").write_bytes(data)
        found = opened(folder / "report.html", options.times)
    middle, load = statistics.median(found), os.getloadavg()[0]
    opening = f"{middle:.2f} s ({min(found):.2f} to {max(found):.2f})"
    table = (
        f"| what | figure | goal |\n| :-- | --: | --: |\n"
        f"| size | {len(data) / 1e6:.2f} MB | 3 MB |\n"
        f"| made, CPU time | {made:.2f} s | |\n"
        f"| opened in headless Chromium, median of {options.times} | {opening} | 1 s |\n"
    )
    print(table)
    if options.write:
        sections.write("page_speed", section(options.rows, table, load))
    raise SystemExit(0 if len(data) < 3e6 and middle < 1 else 1)


def section(rows: int, table: str, load: float) -> str:
    """The section of docs/measurements.md."""
    return (
        f"## The HTML report of {rows} rows\n\n{datetime.date.today()}, 2 cores, load {load:.0f} from other "
        f"work, `python benchmarks/page_speed.py --write`: {rows} rows of twelve kernels against a base, differences "
        f"of {LINES} lines each.\n\n{table}"
    )


if __name__ == "__main__":
    main()
