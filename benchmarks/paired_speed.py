"""How long a comparison of base and head takes: `python benchmarks/paired_speed.py [--blocks N] [KERNELS…]`.

Needs a GPU. Every kernel against itself, all bench cases, as if its machine code had changed (else nothing would be
measured), without baselines. Without --blocks a row ends at the first look that decides, as in a run; with it every row
gets so many paired blocks. Prints the seconds of each kernel's benchmark by what they went into.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from kernelci import climbing, stats
from kernelci.catalog import Kernel
from kernelci.model import RungResult
from kernelci.reasons import Outcome
from kernelci.rungs import benchmark
from kernelci.workbench.device import find

ROOT = Path(__file__).resolve().parents[1]
RUNG = "benchmark"
PARTS = ("setting up and tuning", "starting processes", "getting windows ready", "drawing", "windows", "checking",
         "probing the clock", "ending processes", "auditing")  # fmt: skip


class Heard:
    """Every benchmark as it ends: its seconds, by part; and when the first of them began and the last ended."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.totals = dict.fromkeys(PARTS, 0.0)
        self.began, self.ended, self.rows = float("inf"), 0.0, 0

    def __call__(self, kernel: Kernel, result: RungResult) -> None:
        """One rung is done."""
        if result.rung != RUNG or result.outcome is Outcome.SKIPPED:
            return
        now = time.monotonic()
        self.began, self.ended = min(self.began, now - result.duration_s), now
        note = next((note for note in result.notes if note.startswith("seconds: ")), "")
        found = {part: _seconds(note, part) for part in PARTS}
        self.totals = {part: self.totals[part] + found[part] for part in PARTS}
        self.rows += len(result.rows)
        outcomes = ", ".join(sorted({str(row.outcome) for row in result.rows}))
        blocks = sorted(int(metric.value) for row in result.rows for metric in row.metrics if metric.tag == "blocks")
        cells = [kernel.name, f"{result.duration_s:.1f}", *(f"{found[part]:.1f}" for part in PARTS)]
        cells += [f"{min(blocks, default=0)} to {max(blocks, default=0)}", outcomes]
        self.lines.append(f"| {' | '.join(cells)} |")
        print(self.lines[-1], flush=True)
        for row in result.rows:
            if row.outcome is not Outcome.PASSED and row.finding is not None:
                why = f"{row.outcome} {row.finding.reason}: {row.finding.message}"
                print(f"{kernel.name} {row.case}: {why}", flush=True)

    def summary(self) -> str:
        """The table, and what it comes to."""
        head = ["kernel", "seconds", *PARTS, "blocks", "rows"]
        rule = "| :-- |" + " --: |" * (len(head) - 2) + " :-- |"
        whole = self.ended - self.began
        share = self.totals["windows"] / whole if whole > 0 else 0.0
        text = f"{len(self.lines)} kernels, {self.rows} rows in {whole:.1f} s; windows are {share:.0%} of it."
        return "\n".join([f"| {' | '.join(head)} |", rule, *self.lines, "", text])


def _seconds(note: str, part: str) -> float:
    found = re.search(rf"\b{part} (\d+\.\d)", note)
    return float(found.group(1)) if found else 0.0


def main() -> int:
    """Compare every kernel with itself."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--blocks", type=int, default=0, help="of every row; 0: as in a run")
    options = parser.parse_args()
    if not find().is_gpu:
        print("no GPU here", file=sys.stderr)
        return 3
    os.environ.setdefault("KERNELCI_BASELINES", "false")
    benchmark._footprint = lambda referee: None  # whose machine code is base's own is not measured
    if options.blocks:
        stats.LOOKS = stats.Looks(at=(options.blocks,), deciding=options.blocks)
    heard = Heard()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("kernels", "references"):
            shutil.copytree(ROOT / name, Path(folder) / "base" / name)
        base, out = Path(folder) / "base", Path(folder) / "out"
        climbing.climb(ROOT, (RUNG,), heard, kernels=tuple(options.kernels), base_folder=base, gpus="1", out=out)
    print(heard.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
