"""What became of each mutant, and the figures of all."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from kernelci.model import KernelReport, RungResult
from kernelci.mutating.mutants import Mutant
from kernelci.reasons import Outcome


class Fate(StrEnum):
    """How a mutant ended. Only killed and survived ones say something about the reference's cases."""

    NOT_COMPILED = "not compiled"
    IDENTICAL = "identical"  # the same machine code as the original's in every case
    UNREACHED = "not reached"  # in a function that no case calls on this machine
    KILLED = "killed"
    SURVIVED = "survived"
    UNJUDGED = "not judged"  # no device for it, or no time left
    BROKEN = "broken"  # the runner's or the reference's fault


class Judged(Struct, frozen=True, kw_only=True):
    """A mutant with its fate; `allclose` and `allclose_one`: passed, failed, or empty where it was not asked."""

    id: str
    operator: str
    function: str
    file: str
    line: int
    before: str
    after: str
    device_code: bool
    fate: Fate
    rung: str = ""
    reason: str = ""
    message: str = ""
    allclose: str = ""
    allclose_one: str = ""
    diff: str = ""

    @property
    def label(self) -> str:
        """Id, kind, change and line."""
        return f"{self.id} {self.operator}: {self.before} → {self.after or 'nothing'} line {self.line}"


class Figures(Struct, frozen=True, kw_only=True):
    """Counts of one kernel's mutants. allclose counts those among the killed and survived that it lets pass."""

    mutants: int
    compiled: int
    identical: int
    unreached: int
    unjudged: int
    killed: int
    survived: int
    allclose_survived: int
    allclose_one_survived: int


class Result(Struct, frozen=True, kw_only=True):
    """All that mutating one kernel found."""

    kernel: str
    device: str
    seed: str
    known: int
    duration_s: float
    figures: Figures
    mutants: tuple[Judged, ...]
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """0 all killed · 1 one survived · 3 none was judged · 4 one is broken · 130 interrupted."""
        if self.interrupted:
            return 130
        fates = {judged.fate for judged in self.mutants}
        if Fate.BROKEN in fates:
            return 4
        if Fate.SURVIVED in fates:
            return 1
        return 0 if Fate.KILLED in fates else 3


def judged(mutant: Mutant, report: KernelReport | None, diff: str) -> Judged:
    """The fate that follows from a climb; None: there was no time for one."""
    fate, stopped = _fate(report)
    finding = stopped.finding if stopped is not None else None
    one, every = _allclose(report) if fate in (Fate.KILLED, Fate.SURVIVED) else ("", "")
    return Judged(
        id=mutant.id,
        operator=mutant.operator,
        function=mutant.function,
        file=mutant.file,
        line=mutant.line,
        before=mutant.before,
        after=mutant.after,
        device_code=mutant.device,
        fate=fate,
        rung=stopped.rung if stopped is not None else "",
        reason=finding.reason if finding is not None else "",
        message=finding.message[:1000] if finding is not None else "",
        allclose=every,
        allclose_one=one,
        diff=diff,
    )


def _fate(report: KernelReport | None) -> tuple[Fate, RungResult | None]:
    if report is None:
        return Fate.UNJUDGED, None
    broken = next((rung for rung in report.rungs if rung.outcome in (Outcome.BROKEN, Outcome.INVALID)), None)
    if broken is not None:
        return Fate.BROKEN, broken
    climbed = [rung for rung in report.rungs if rung.rung != "allclose"]
    for rung in climbed:
        if rung.outcome is Outcome.FAILED:
            return (Fate.NOT_COMPILED if rung.rung in ("precheck", "compile") else Fate.KILLED), rung
    skipped = next((rung for rung in climbed if rung.outcome is not Outcome.PASSED), None)
    return (Fate.UNJUDGED, skipped) if skipped is not None else (Fate.SURVIVED, None)


def _allclose(report: KernelReport | None) -> tuple[str, str]:
    """What allclose says of the typical case, and of all cases."""
    found = report.rung("allclose") if report is not None else None
    if found is None or not found.rows:
        return "", ""
    passed = [row.outcome is Outcome.PASSED for row in found.rows]
    return _word(passed[0]), _word(all(passed))


def _word(passed: bool) -> str:
    return "passed" if passed else "failed"


def figures(found: Iterable[Judged]) -> Figures:
    """The counts."""
    every = list(found)
    count = {fate: sum(judged.fate is fate for judged in every) for fate in Fate}
    return Figures(
        mutants=len(every),
        compiled=len(every) - count[Fate.NOT_COMPILED] - sum(j.fate is Fate.UNJUDGED and not j.rung for j in every),
        identical=count[Fate.IDENTICAL],
        unreached=count[Fate.UNREACHED],
        unjudged=count[Fate.UNJUDGED],
        killed=count[Fate.KILLED],
        survived=count[Fate.SURVIVED],
        allclose_survived=sum(judged.allclose == "passed" for judged in every),
        allclose_one_survived=sum(judged.allclose_one == "passed" for judged in every),
    )
