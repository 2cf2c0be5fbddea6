"""One kernel up the rungs, in two parts; each rung's fault ends as its outcome.

Rungs that measure need quiet: no other candidate may run. So every kernel first climbs all that can be climbed in
company; what needs quiet, and what stands on that, comes when all kernels have got that far.
"""

import time
import traceback
from collections.abc import Callable

from kernelci.catalog import Kernel
from kernelci.errors import GpuSick, RunnerBroken, Stop, is_full
from kernelci.losing import lost
from kernelci.model import BLOCKING, EXECUTING, Finding, KernelReport, Row, RungResult, worst
from kernelci.reasons import Outcome, outcome_of
from kernelci.referee import KernelReferee
from kernelci.reference import ReferenceFailed
from kernelci.rungs import Findings, Rung
from kernelci.workbench.device import serves, why_no_gpu
from kernelci.workbench.spent import Spent

Progress = Callable[[Kernel, RungResult], None]
Rungs = tuple[tuple[Rung, bool], ...]


class Ascent:
    """One kernel's climb; `rungs` says of each whether it was asked for."""

    def __init__(self, referee: KernelReferee, rungs: Rungs, progress: Progress | None = None) -> None:
        self.referee = referee
        self._rungs = rungs
        self._progress = progress
        self._late = late(rungs)
        self._sha256 = referee.kernel.sha256()  # of what is judged: the files may change meanwhile
        self._done: dict[str, RungResult] = {}
        self.told = False
        """Whether its report says something: its first part is over, or a rung has stopped it."""
        referee.climbed = self._done

    def in_company(self) -> None:
        """Climb what needs no quiet, and settle what of the rest can't be climbed anyway."""
        for rung, climbed in self._rungs:
            if rung.name not in self._late:
                self._climb(rung, climbed)
        for rung, climbed in self._rungs:
            if rung.name in self._late and _why_skipped(self.referee, rung, climbed, self._done):
                self._climb(rung, climbed)
        self.told = True

    def in_quiet(self) -> None:
        """Climb the rest."""
        for rung, climbed in self._rungs:
            if rung.name not in self._done:
                self._climb(rung, climbed)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left."""
        return len(self._done) == len(self._rungs)

    def report(self) -> KernelReport:
        """What there is, in the ladder's order; rungs that were not reached are SKIPPED as interrupted."""
        kernel, done = self.referee.kernel, dict(self._done)  # after an interrupt its lane may still be at work
        path = self.referee.relative(str(kernel.path))
        results = tuple(done.get(rung.name) or _interrupted(rung) for rung, _ in self._rungs)
        gone = lost(self.referee, done)
        return KernelReport(kernel.name, kernel.reference, kernel.backend, path, self._sha256, results, gone)

    def _climb(self, rung: Rung, climbed: bool) -> None:
        began = time.monotonic()
        finding = _why_skipped(self.referee, rung, climbed, self._done)
        result = _skipped(rung, finding) if finding else _run(self.referee, rung, began)
        self._done[rung.name] = result
        self.told = self.told or result.outcome in BLOCKING
        if self._progress is not None:
            self._progress(self.referee.kernel, result)


def late(rungs: Rungs) -> frozenset[str]:
    """The rungs that need quiet, and those that stand on one of them."""
    found: set[str] = set()
    for rung, _ in rungs:
        if "quiet" in rung.needs or found & set(rung.after):
            found.add(rung.name)
    return frozenset(found)


def _why_skipped(referee: KernelReferee, rung: Rung, climbed: bool, done: dict[str, RungResult]) -> Finding | None:
    if not climbed:
        return Finding("not-requested", f"{rung.name} was not asked for")
    blocked = next((name for name in rung.after if name in done and _blocks(done[name], rung)), None)
    if blocked is not None:
        return _after(done[blocked])
    if rung.name == "compile" and not referee.targets:
        return Finding("target", "none of the asked targets is in the card's list")
    if "gpu" in rung.needs and not referee.device.is_gpu:
        return Finding("no-gpu", why_no_gpu())
    if "device" in rung.needs and not serves(referee.kernel.backend, referee.device):
        return Finding("no-interpreter", f"{why_no_gpu()}, and {referee.kernel.backend} has no interpreter")
    return None


def _blocks(below: RungResult, rung: Rung) -> bool:
    """Whether a rung can't be climbed after what became of one that it stands on.

    Host code that asks for values can't be compiled without any, but where kernels run it gets them; and what torch
    builds by itself is built there. Cases that are too large to be judged under every draw are judged where they are
    timed, in every window.
    """
    reason = below.finding.reason if below.finding is not None else ""
    if reason in ("needs-data", "built-by-torch") and {"device", "gpu"} & set(rung.needs):
        return False
    if reason == "cost" and below.outcome is Outcome.SKIPPED and "quiet" in rung.needs:
        return False
    return below.outcome is not Outcome.PASSED


def _after(blocking: RungResult) -> Finding:
    """A rung that stands on one that did not pass is skipped, with that one's own reason if it was skipped too."""
    if blocking.outcome is Outcome.SKIPPED and blocking.finding is not None:
        return blocking.finding
    return Finding("earlier-rung", f"{blocking.rung} is {blocking.outcome}")


def _interrupted(rung: Rung) -> RungResult:
    return _skipped(rung, Finding("interrupted", f"the run ended before {rung.name}"))


def _skipped(rung: Rung, finding: Finding) -> RungResult:
    return RungResult(rung.name, outcome_of(finding.reason), finding=finding)


def _run(referee: KernelReferee, rung: Rung, began: float) -> RungResult:
    referee.spent = Spent()
    try:
        found = rung.run(referee)
        if rung.name in EXECUTING and not found.rows:
            raise Stop("no-case", referee.why_no_case())
        if rung.name in EXECUTING and referee.device.is_gpu:  # the interpreter's seconds tell nothing of a kernel
            found.notes.append(referee.spent.text(time.monotonic() - began, "calls"))
        return _judged(rung, found, began)
    except Stop as stop:
        finding = referee.finding(stop, rung=rung.name)
    except ReferenceFailed as error:
        finding = Finding("reference", str(error)[:10_000])
    except RunnerBroken as error:
        finding = Finding("gpu-sick" if isinstance(error, GpuSick) else "candidate-start", error.message)
    except Exception as error:
        finding = _unforeseen(error)
    return RungResult(rung.name, outcome_of(finding.reason), round(time.monotonic() - began, 3), finding)


def _unforeseen(error: Exception) -> Finding:
    if isinstance(error, OSError) and is_full(error):
        return Finding("no-space", str(error)[:1000])
    return Finding("rung-error", f"{type(error).__name__}: {error}", log=traceback.format_exc()[-8000:])


def _judged(rung: Rung, found: Findings, began: float) -> RungResult:
    """The rung's outcome is its worst row's; that row's finding speaks for it."""
    outcome = worst([row.outcome for row in found.rows]) if found.rows else Outcome.PASSED
    finding = None if outcome is Outcome.PASSED else _spokesman(found.rows, outcome)
    return RungResult(
        rung.name,
        outcome,
        round(time.monotonic() - began, 3),
        finding,
        tuple(found.rows),
        tuple(found.metrics),
        tuple(found.artifacts),
        tuple(found.notes),
    )


def _spokesman(rows: list[Row], outcome: Outcome) -> Finding | None:
    return next((row.finding for row in rows if row.outcome is outcome), None)
