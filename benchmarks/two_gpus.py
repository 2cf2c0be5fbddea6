"""Whether all GPUs of a host give the figures of one, and how much sooner: `python benchmarks/two_gpus.py [KERNELS…]`.

Needs a host with two GPUs of one kind. Runs the ladder up to the benchmark rung twice on a handful of kernels: on all
GPUs, then on one, without baselines. What is compared is the part that needs quiet, where a GPU measures one kernel at
a time: its seconds, and each row's time, which may differ by the practical floor and by what the rows' own intervals
say, as the root of the sum of squares. Prints tables; exit code 1 where a row differs by more, 3 without a second GPU.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from kernelci import climbing, units
from kernelci.catalog import Kernel
from kernelci.model import Metric, Report, RungResult, Unit
from kernelci.reasons import Outcome
from kernelci.workbench.device import find_all

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ("softmax/triton", "softmax/cuda", "rmsnorm/triton", "rmsnorm/cuda")
FLOOR = 0.005
RUNG = "benchmark"


class Climbed(Struct, frozen=True):
    """A run: its report, the seconds of the part that needs quiet, and those of the rungs in it, one after another."""

    report: Report
    quiet_s: float
    rungs_s: float


class Compared(Struct, frozen=True):
    """A row by several GPUs and by one: times of a call, ns (0: none), and what they may differ by."""

    row: str
    several_ns: float
    one_ns: float
    room: float
    why: str = ""

    @property
    def difference(self) -> float:
        """Several over one, less one; infinite where one has no time."""
        return self.several_ns / self.one_ns - 1 if self.several_ns and self.one_ns else math.inf

    @property
    def same(self) -> bool:
        """Whether they agree."""
        return abs(self.difference) <= self.room


class Quiet:
    """Hears of every rung that is done."""

    def __init__(self) -> None:
        self._done: list[tuple[float, float]] = []

    def __call__(self, kernel: Kernel, result: RungResult) -> None:
        """One is done, after its `duration_s`."""
        if result.rung == RUNG and result.outcome is not Outcome.SKIPPED:
            self._done.append((time.monotonic(), result.duration_s))

    @property
    def quiet_s(self) -> float:
        """From the first one's beginning to the last one's end."""
        return max((end for end, _ in self._done), default=0.0) - min((end - s for end, s in self._done), default=0.0)

    @property
    def rungs_s(self) -> float:
        """Of all of them."""
        return sum(seconds for _, seconds in self._done)


def climbed(root: Path, kernels: Sequence[str], gpus: str) -> Climbed:
    """A run of these kernels. Raises KernelciError."""
    heard = Quiet()
    with tempfile.TemporaryDirectory() as folder:
        report, _ = climbing.climb(root, (RUNG,), heard, kernels=tuple(kernels), gpus=gpus, out=Path(folder) / "out")
    return Climbed(report, heard.quiet_s, heard.rungs_s)


def compared(several: Report, one: Report) -> list[Compared]:
    """Every row that one of them has."""
    left, right = dict(_times(several)), dict(_times(one))
    found = []
    for row in dict.fromkeys((*left, *right)):
        (time_left, why_left), (time_right, why_right) = (
            left.get(row, (None, "no row")),
            right.get(row, (None, "no row")),
        )
        rooms = [_half(metric) for metric in (time_left, time_right) if metric is not None]
        room = math.hypot(FLOOR, *rooms)
        found.append(
            Compared(row, _ns(time_left), _ns(time_right), room, "; ".join(filter(None, (why_left, why_right))))
        )
    return found


def _times(report: Report) -> Iterator[tuple[str, tuple[Metric | None, str]]]:
    """Each row's time, or why there is none."""
    for kernel in report.kernels:
        for row in (row for rung in kernel.rungs if rung.rung == RUNG for row in rung.rows):
            metric = next((metric for metric in row.metrics if metric.tag == "time"), None)
            yield f"{kernel.name} {row.case}", (metric, row.finding.reason if row.finding is not None else "")


def _half(metric: Metric) -> float:
    """Half of a time's interval, as a share of it."""
    value, low, high = (
        float(each) if each is not None else math.nan for each in (metric.value, metric.low, metric.high)
    )
    half = (high - low) / 2 / value if value else math.nan
    return half if math.isfinite(half) else 0.0


def _ns(metric: Metric | None) -> float:
    return float(metric.value) if metric is not None else 0.0


def table(rows: Sequence[Compared], several: Climbed, one: Climbed, gpus: int) -> str:
    """Both tables in Markdown."""
    lines = [f"| row | one GPU | {gpus} GPUs | difference | may be | |", "| :-- | --: | --: | --: | --: | :-- |"]
    for row in rows:
        times = [units.value(ns, Unit.NANOSECONDS) if ns else "" for ns in (row.one_ns, row.several_ns)]
        difference = f"{row.difference:+.2%}" if math.isfinite(row.difference) else ""
        said = row.why or ("same" if row.same else "**differs**")
        lines.append(f"| {row.row} | {' | '.join(times)} | {difference} | {row.room:.2%} | {said} |")
    lines += ["", "| GPUs | measuring | its rungs, added | whole run |", "| --: | --: | --: | --: |"]
    for count, run in ((1, one), (gpus, several)):
        lines.append(f"| {count} | {run.quiet_s:.1f} s | {run.rungs_s:.1f} s | {run.report.duration_s:.1f} s |")
    if one.quiet_s:
        lines += ["", f"{gpus} GPUs measure in {several.quiet_s / one.quiet_s:.0%} of the time of one."]
    return "\n".join(lines)


def main() -> int:
    """Run on all GPUs, which finds a cold cache, then on one, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=list(KERNELS))
    parser.add_argument("--project", type=Path, default=ROOT)
    options = parser.parse_args()
    gpus = sum(device.is_gpu for device in find_all())
    if gpus < 2:
        print(f"{gpus} GPUs here, and two are needed", file=sys.stderr)
        return 3
    os.environ.setdefault("KERNELCI_BASELINES", "false")
    several = climbed(options.project, options.kernels, "all")
    one = climbed(options.project, options.kernels, "1")
    rows = compared(several.report, one.report)
    print(table(rows, several, one, gpus))
    return 0 if rows and all(row.same for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
