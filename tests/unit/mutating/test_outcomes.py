"""A mutant's fate follows from its climb; figures count only what says something of the reference's cases."""

import pytest

from kernelci.model import Finding, KernelReport, Row, RungResult
from kernelci.mutating.mutants import Mutant
from kernelci.mutating.outcomes import Fate, Judged, Result, figures, judged
from kernelci.reasons import Outcome

MUTANT = Mutant(
    kernel="op/name", number=1, operator="compare", function="f", file="name.py", line=3, before="<", after="<=",
    device=True, reaches="f", start=0, end=1, new="<=",
)  # fmt: skip
PASSED = {"precheck": "", "compile": "", "run": "", "correctness": ""}
OUTCOMES = {
    "": Outcome.PASSED, "wrong": Outcome.FAILED, "syntax": Outcome.FAILED, "compile-error": Outcome.FAILED,
    "out-of-bounds": Outcome.FAILED, "no-interpreter": Outcome.SKIPPED, "earlier-rung": Outcome.SKIPPED,
    "reference": Outcome.BROKEN,
}  # fmt: skip


def _finding(reason: str) -> Finding | None:
    return Finding(reason, f"because of {reason}") if reason else None


def _report(rows: tuple[str, ...] = (), **reasons: str) -> KernelReport:
    """A climb whose rungs ended with these reasons; `rows`: what allclose found of each case."""
    rungs = [
        RungResult(name, OUTCOMES[reason], finding=_finding(reason)) for name, reason in (PASSED | reasons).items()
    ]
    cases = tuple(Row(OUTCOMES[reason], "case", finding=_finding(reason)) for reason in rows)
    failed = next((reason for reason in rows if reason), "")
    rungs.append(RungResult("allclose", OUTCOMES[failed], finding=_finding(failed), rows=cases))
    return KernelReport("op/name#001", "op", "triton", "name.py", "0", tuple(rungs))


@pytest.mark.parametrize(
    ("report", "fate", "rung"),
    [
        (_report(), Fate.SURVIVED, ""),
        (_report(precheck="syntax"), Fate.NOT_COMPILED, "precheck"),
        (_report(compile="compile-error", run="earlier-rung"), Fate.NOT_COMPILED, "compile"),
        (_report(run="out-of-bounds", correctness="earlier-rung"), Fate.KILLED, "run"),
        (_report(correctness="wrong"), Fate.KILLED, "correctness"),
        (_report(run="no-interpreter", correctness="no-interpreter"), Fate.UNJUDGED, "run"),
        (_report(correctness="reference"), Fate.BROKEN, "correctness"),
        (_report(rows=("wrong",)), Fate.SURVIVED, ""),
        (None, Fate.UNJUDGED, ""),
    ],
)
def test_fate(report: KernelReport | None, fate: Fate, rung: str) -> None:
    found = judged(MUTANT, report, "")
    assert (fate, rung) == (found.fate, found.rung)


@pytest.mark.parametrize(
    ("rows", "one", "every"),
    [
        (("", ""), "passed", "passed"),
        (("", "wrong"), "passed", "failed"),
        (("wrong",), "failed", "failed"),
        ((), "", ""),
    ],
)
def test_allclose(rows: tuple[str, ...], one: str, every: str) -> None:
    found = judged(MUTANT, _report(rows=rows, correctness="wrong"), "")
    assert (one, every) == (found.allclose_one, found.allclose)


def test_allclose_does_not_count_what_does_not_compile() -> None:
    found = judged(MUTANT, _report(rows=("",), compile="compile-error"), "")
    assert ("", "") == (found.allclose_one, found.allclose)


def _judged(fate: Fate, allclose: str = "", rung: str = "") -> Judged:
    return Judged(
        id="op/name#001", operator="compare", function="f", file="name.py", line=3, before="<", after="<=",
        device_code=True, fate=fate, rung=rung, allclose=allclose, allclose_one=allclose,
    )  # fmt: skip


def test_figures() -> None:
    found = figures(
        [
            _judged(Fate.KILLED, "passed"),
            _judged(Fate.KILLED, "failed"),
            _judged(Fate.SURVIVED, "passed"),
            _judged(Fate.NOT_COMPILED),
            _judged(Fate.IDENTICAL),
            _judged(Fate.UNJUDGED),
            _judged(Fate.UNJUDGED, rung="run"),
        ]
    )
    assert (7, 5, 1, 2, 1, 2) == (
        found.mutants, found.compiled, found.identical, found.killed, found.survived, found.allclose_survived,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fates", "code"),
    [
        ((Fate.KILLED, Fate.IDENTICAL), 0),
        ((Fate.KILLED, Fate.SURVIVED), 1),
        ((Fate.NOT_COMPILED, Fate.UNJUDGED), 3),
        ((Fate.SURVIVED, Fate.BROKEN), 4),
    ],
)
def test_exit_code(fates: tuple[Fate, ...], code: int) -> None:
    every = tuple(map(_judged, fates))
    result = Result(
        kernel="op/name", device="CPU", seed="0", known=9, duration_s=1.0, figures=figures(every), mutants=every
    )
    assert code == result.exit_code
