"""Two commits measured against each other on this GPU, in pairs of blocks: what decides a suspicion."""

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from kernelci import results
from kernelci.errors import KernelciError, RunnerBroken
from kernelci.git import Repository
from kernelci.history import Event, answered
from kernelci.model import Report, Row
from kernelci.nightly.detect import Suspect

PAIR_S = 3600.0  # at most, for one pair
TRIES = 4  # pairs of one night for what stays open


class Paired(Struct, frozen=True):
    """`bad` against `good`: SLOWER, FASTER, SAME or UNKNOWN (with `text` saying why); fractions with an interval."""

    verdict: str
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""


MeasurePair = Callable[[str, str, str, str], Paired]
"""Of a kernel and its case: the good commit against the bad one."""


def measurer(root: Path) -> MeasurePair:
    """What measures commits of the repository at `root`, each pair in a process of its own."""

    def measure(kernel: str, case: str, good: str, bad: str) -> Paired:
        with tempfile.TemporaryDirectory(prefix="kernelci-pair-") as name:
            try:
                return read(_climbed(root, Path(name), (kernel, case, good, bad)), kernel, case)
            except subprocess.TimeoutExpired:
                return Paired("UNKNOWN", text=f"not done after {PAIR_S:.0f} s")
            except KernelciError as error:
                return Paired("UNKNOWN", text=error.message[:500])

    return measure


def _climbed(root: Path, scratch: Path, what: tuple[str, str, str, str]) -> Report:
    """The report of the kernel's case of the bad commit, whose base is the good one. Both are trusted code."""
    kernel, case, good, bad = what
    repository = Repository(root)
    for side, commit in (("base", good), ("head", bad)):
        repository.write(repository.tree(repository.commit(commit)), scratch / side)
    head, base = scratch / "head" / repository.prefix, scratch / "base" / repository.prefix
    command = [sys.executable, "-P", "-s", "-m", "kernelci", "--root", str(head), "run", "--rungs", "benchmark"]
    command += ["--case", case, "--base-folder", str(base), "--out", str(scratch / "out"), "--", kernel]
    done = subprocess.run(command, cwd=scratch, stdout=2, check=False, timeout=PAIR_S)
    if not (scratch / "out" / results.FILE_NAME).is_file():
        raise RunnerBroken(f"the ladder left no report (exit code {done.returncode}); its message stands above")
    return results.read(scratch / "out")


def read(report: Report, kernel: str, case: str) -> Paired:
    """What a report says of one kernel's case."""
    found = next((each for each in report.kernels if each.name == kernel), None)
    timed = found.rung("benchmark") if found else None
    row = next((row for row in timed.rows if row.case == case), None) if timed else None
    if row is not None and row.verdict:
        return _of_row(row)
    stop = (row.finding if row else None) or (timed.finding if timed else None)
    return Paired("UNKNOWN", text=(stop.message if stop else "the case was not measured")[:500])


def _of_row(row: Row) -> Paired:
    delta = next((metric for metric in row.metrics if metric.tag == "delta"), None)
    if delta is None:
        return Paired(row.verdict.value, text="; ".join(row.notes)[:500])
    ends = (_number(delta.value), _number(delta.low), _number(delta.high))
    return Paired(row.verdict.value, *ends, text="; ".join(row.notes)[:500])


def _number(value: float | str | None) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def events(suspects: Iterable[Suspect], measure: MeasurePair, until: float = math.inf) -> tuple[Event, ...]:
    """Every suspicion, decided; none is begun after `until`, by time.monotonic(): what is left comes again."""
    return tuple(_event(each, _answer(each, measure)) for each in suspects if time.monotonic() < until)


def _answer(suspect: Suspect, measure: MeasurePair) -> Paired:
    """What was measured and yet left open is measured again: one pair does not even out how some rows vary."""
    for _ in range(TRIES):
        found = measure(suspect.kernel, suspect.case, suspect.good, suspect.bad)
        if found.delta is None or answered(found.verdict, found.high, suspect.size) != "UNKNOWN":
            break
    return found


def _event(suspect: Suspect, paired: Paired) -> Event:
    return Event(
        suspect.night, "remeasured", suspect.kernel, suspect.case, suspect.gpu, suspect.since, suspect.good,
        suspect.bad, paired.verdict, paired.delta, paired.low, paired.high, suspect.size, paired.text,  # type: ignore[arg-type]
    )  # fmt: skip
