"""`watch`: on each save of a kernel, precheck, compile and a short interpreter check, by processes that stay warm."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelci import catalog, config, gpus
from kernelci.catalog import Kernel
from kernelci.errors import ConfigError
from kernelci.model import KernelReport, RungResult
from kernelci.reasons import REASONS, Outcome

if TYPE_CHECKING:
    from kernelci.court import Court

POLL_S = 0.05
RUNGS = ("precheck", "compile", "run", "correctness")
USUAL_TARGET = "sm_90a"
Stamp = tuple[tuple[str, int, int], ...]


def watch(root: Path, name: str, target: str = "") -> int:
    """Answer every save until interrupted; 130 then. Raises ConfigError for an unknown kernel."""
    kernel = catalog.scan(root, config.load(root)).one(name, "watched")
    click.echo(f"watching {kernel.path.relative_to(root)}; Ctrl-C ends it", err=True)
    try:
        for report, seconds in answers(root, name, target):
            click.echo(summary(report, seconds))
    except KeyboardInterrupt:  # the usual end: there is nothing to say of it
        pass
    return 130


def answers(root: Path, name: str, target: str = "") -> Iterator[tuple[KernelReport, float]]:
    """A report for the kernel as it is, then one after each change of its files or its reference; and the seconds.

    Without a `target` it is the usual one, or the first of the card's where the card leaves that out. Raises
    ConfigError for one that no GPU has.
    """
    from kernelci.ladder import Plan, opened

    root = root.resolve()
    options = config.load(root)
    if message := gpus.unknown((target,) if target else options.targets):
        raise ConfigError(message, hint="correct --target, or `targets` in the configuration")
    found = catalog.scan(root, options)
    kernel = found.one(name, "watched")
    with (
        tempfile.TemporaryDirectory() as out,
        opened(found, options, Plan((kernel,), Path(out), tier="watch")) as court,
    ):
        _warm(kernel, court)
        seen: tuple[Stamp, Stamp] | None = None
        while True:
            stamp = (_stamp(kernel.sources()), _stamp((found.references.get(kernel.reference),)))
            if stamp == seen:
                time.sleep(POLL_S)
                continue
            if seen is not None and stamp[1] != seen[1]:
                _forget_reference(court)
            seen, began = stamp, time.monotonic()
            kernel = catalog.read(kernel.path)  # by its path, since a broken card may change its name
            yield _answer(kernel, court, target), time.monotonic() - began


def _warm(kernel: Kernel, court: "Court") -> None:
    """Start both processes now: the first answer may come from the cache, and the second must not wait for imports."""
    from kernelci import backends
    from kernelci.ladder import warm

    if kernel.backend in backends.names():
        court.builder.warm(kernel.backend)
        warm((kernel,), court)


def _forget_reference(court: "Court") -> None:
    from kernelci.workbench.truths import Truths

    court.references.clear()
    court.truths = Truths(court.device.torch_name, court.seed)


def _answer(kernel: Kernel, court: "Court", target: str) -> KernelReport:
    from kernelci.ladder import chosen, climb_one
    from kernelci.referee import KernelReferee
    from kernelci.rungs import ladder

    rungs = chosen(ladder(court.catalog.root / court.config.rungs), RUNGS)
    referee = KernelReferee(kernel, court, (target or _usual(kernel, court),))
    referee.start_compiling()
    try:
        return climb_one(referee, rungs, None)
    finally:
        referee.forget()


def _usual(kernel: Kernel, court: "Court") -> str:
    known = kernel.card.targets if kernel.card and kernel.card.targets else court.config.targets
    return USUAL_TARGET if USUAL_TARGET in known or not known else known[0]


def _stamp(files: tuple[Path | None, ...]) -> Stamp:
    """Changes when a file does: names, times and sizes. One that is away for a moment, as in a save, is left out."""
    stats = [(str(file), file.stat()) for file in files if file is not None and file.exists()]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


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
