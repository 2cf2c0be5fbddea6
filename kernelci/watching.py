"""`watch`: on each save of a kernel, precheck, compile and a short interpreter check, by processes that stay warm."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from kernelci import catalog, config
from kernelci.catalog import Kernel
from kernelci.model import KernelReport, RungResult
from kernelci.reasons import REASONS, Outcome

POLL_S = 0.05
RUNGS = ("precheck", "compile", "run", "correctness")


def watch(root: Path, name: str, target: str) -> int:
    """Answer every save until interrupted. Raises ConfigError for an unknown kernel."""
    for report, seconds in answers(root, name, target):
        click.echo(summary(report, seconds))
    return 0


def answers(root: Path, name: str, target: str) -> Iterator[tuple[KernelReport, float]]:
    """A report for the kernel as it is, then one after each change of its files or its reference; and the seconds."""
    from kernelci.ladder import Plan, chosen, climb_one, opened
    from kernelci.referee import KernelReferee
    from kernelci.rungs import ladder

    root = root.resolve()
    options = config.load(root)
    found = catalog.scan(root, options)
    (kernel, *_) = found.select((name,))
    with (
        tempfile.TemporaryDirectory() as out,
        opened(found, options, Plan((kernel,), Path(out), tier="watch")) as court,
    ):
        rungs = chosen(ladder(root / options.rungs), RUNGS)
        seen = None
        while True:
            stamp = _stamp(kernel, found)
            if stamp == seen:
                time.sleep(POLL_S)
                continue
            seen, began = stamp, time.monotonic()
            (kernel, *_) = catalog.scan(root, options).select((name,))
            court.references.clear()
            referee = KernelReferee(kernel, court, (target,))
            referee.start_compiling()
            try:
                report = climb_one(referee, rungs, None)
            finally:
                referee.forget()
            yield report, time.monotonic() - began


def _stamp(kernel: Kernel, found: catalog.Catalog) -> tuple[tuple[str, int], ...]:
    files = [*kernel.sources(), *filter(None, [found.references.get(kernel.reference)])]
    return tuple((str(file), file.stat().st_mtime_ns) for file in files if file.exists())


def summary(report: KernelReport, seconds: float) -> str:
    """One line per answer; below it what stopped the kernel, and where."""
    climbed = [rung for rung in report.rungs if not (rung.finding and rung.finding.reason == "not-requested")]
    steps = "  ".join(f"{rung.rung} {_word(rung)}" for rung in climbed)
    lines = [f"{time.strftime('%H:%M:%S')}  {report.name}  {steps}  ({seconds:.2f} s)"]
    stopped = report.stopped_at
    if stopped is not None and stopped.finding is not None:
        finding = stopped.finding
        place = f"{finding.file}:{finding.line}: " if finding.file else ""
        lines += [f"  {place}{finding.message}", f"  next: {REASONS[finding.reason].next_step}"]
    return "\n".join(click.unstyle(line) for line in lines)


def _word(rung: RungResult) -> str:
    return {Outcome.PASSED: "ok", Outcome.SKIPPED: "-"}.get(rung.outcome, rung.outcome.value)
