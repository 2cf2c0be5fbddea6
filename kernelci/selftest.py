"""What `selftest` does: climb with a corpus of known kernels and compare what became of each with what its card says.

Bad ones must be stopped by the rung, and for the reason, that their card names; honest ones that look suspicious must
pass. So a user sees what the harness stops on their own runner.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kernelci import catalog, config, resources
from kernelci.card import Expectation, parse
from kernelci.errors import CardError, ConfigError, RunnerBroken
from kernelci.model import KernelReport, Report

# Short deadlines: what hangs in the corpus hangs for ever, and what is honest takes milliseconds.
OPTIONS: dict[str, Any] = {
    "interpreter_elements": 2**14,
    "interpreter_timeout_s": 15.0,
    "call_timeout_s": 20.0,
    "memory_bytes": 2 * 2**30,
    "targets": ("sm_90a",),
}
GPU_LANES = 12  # each kernel of the corpus is small, and mostly waits for its own processes
LAST_RUNG = "correctness"  # members that are stopped no later climb no further
GROUPS = {
    "A": "Bending the clock",
    "B": "Not doing the work again",
    "C": "Taking the answer",
    "D": "A cheaper answer that passes",
    "E": "Not a kernel at all",
    "F": "Changing the judge",
    "m": "Seeded bugs, and their clean twins",
    "honest": "Honest, but suspicious to look at",
    "": "Field checks",
}
STOPPED, MISSED, ACCEPTED, REFUSED, NOT_RUN = "stopped", "missed", "accepted", "refused", "not run"


class Member(Struct, frozen=True):
    """One kernel of the corpus and what must become of it."""

    path: Path
    backend: str
    expect: Expectation

    @property
    def group(self) -> str:
        """The group of its class: a key of GROUPS."""
        if self.expect.class_ in GROUPS:
            return self.expect.class_
        first = self.expect.class_[:1]
        return first if first in GROUPS else ""

    def belongs(self, classes: Iterable[str]) -> bool:
        """Whether it is of one of these classes or groups; all are where none is given."""
        wanted = set(classes)
        return not wanted or bool({self.group, self.expect.class_, self.path.stem} & wanted)


class Result(Struct, frozen=True):
    """What became of a member. `detail` says what happened instead, or why it was not run."""

    kernel: str
    class_: str
    group: str
    title: str
    expected: str
    verdict: str
    detail: str = ""


class Score(Struct, frozen=True):
    """All results of one climb."""

    results: tuple[Result, ...]
    machine: str

    def count(self, *verdicts: str) -> int:
        """How many ended so."""
        return sum(result.verdict in verdicts for result in self.results)

    @property
    def exit_code(self) -> int:
        """0 all as they should be · 1 a bad one was missed or an honest one refused · 3 nothing ran."""
        if self.count(MISSED, REFUSED):
            return 1
        return 0 if self.count(STOPPED, ACCEPTED) else 3


def run(classes: tuple[str, ...] = (), tier: str = "pr") -> Score:
    """Climb with the members of these classes in a project that is thrown away. Raises ConfigError for no member."""
    with tempfile.TemporaryDirectory(prefix="kernelci-selftest-") as folder:
        members = [member for member in corpus(resources.folder(resources.CORPUS)) if member.belongs(classes)]
        if not members:
            raise ConfigError(f"no class {', '.join(classes)}", hint=f"groups: {', '.join(filter(None, GROUPS))}")
        machine = gpu()
        lanes = GPU_LANES if machine else 2
        left_out = reasons_not_to_run(members, machine, tier)
        report = climb(
            Path(folder), [member for member in members if member.path.stem not in left_out], tier, lanes=lanes
        )
    return Score(tuple(judge(member, report, left_out) for member in members), machine or "no GPU")


def corpus(folder: Path) -> tuple[Member, ...]:
    """The members: every file with a card that says what to expect. The others are what a member needs beside it."""
    found = []
    for path in sorted(folder.glob("*.py")):
        try:
            card = parse(path.read_text(encoding="utf-8"))
        except CardError as error:
            raise RunnerBroken(f"corpus: {path.name}: {error.message}") from error
        if card.expect is not None:
            found.append(Member(path, card.backend, card.expect))
    return tuple(found)


def reasons_not_to_run(members: Iterable[Member], gpu: str, tier: str) -> dict[str, str]:
    """By stem: why a member would show nothing here."""
    from kernelci import rungs

    known = {rung.name for rung in rungs.ladder()}
    found = {member.path.stem: _why_not(member, known, gpu, tier) for member in members}
    return {stem: reason for stem, reason in found.items() if reason}


def _why_not(member: Member, rungs: set[str], gpu: str, tier: str) -> str:
    if member.expect.rung not in rungs:
        return f"kernelci has no rung {member.expect.rung} yet"
    if member.expect.gpu and not gpu:
        return "only a GPU shows it"
    if member.expect.tier not in ("pr", tier):
        return f"only --tier {member.expect.tier} has the case that shows it"
    return ""


def climb(
    root: Path, members: Iterable[Member], tier: str = "pr", *, rungs: tuple[str, ...] = (), **flags: Any
) -> Report | None:
    """Climb in a fresh project at `root`, the honest ones last; None where there is nothing to climb with."""
    from kernelci import ladder

    members = tuple(members)
    if not members:
        return None
    lay_out(root, members)
    options = config.load(root, {}, {**OPTIONS, "cache": str(root / "cache"), **flags})
    found = catalog.scan(root, options)
    reports = []
    for names, wanted in _groups(members, rungs):
        order = sorted(names, key=lambda name: names[name].expect.honest)
        kernels = tuple(kernel for name in order for kernel in found.kernels if kernel.path.stem == name)
        reports.append(ladder.climb(found, options, ladder.Plan(kernels, root / "out", wanted, tier=tier)))
    climbed = tuple(kernel for report in reports for kernel in report.kernels)
    return msgspec.structs.replace(reports[0], kernels=climbed)


def _groups(members: Iterable[Member], rungs: tuple[str, ...]) -> list[tuple[dict[str, Member], tuple[str, ...]]]:
    """The members by stem with the rungs they climb: those stopped by correctness at the latest, and the others."""
    from kernelci.rungs import ORDER

    early = set(ORDER[: ORDER.index(LAST_RUNG) + 1])
    groups = []
    for wanted, is_early in (((LAST_RUNG,), True), ((), False)):
        own = {member.path.stem: member for member in members if (member.expect.rung in early) is is_early}
        if own:
            groups.append((own, rungs or wanted))
    return groups


def lay_out(root: Path, members: Iterable[Member]) -> None:
    """Copy the members with the files beside them, and the corpus's own references."""
    (root / "kernels").mkdir(parents=True)
    (root / "references").mkdir()
    for member in members:
        for source in member.path.parent.glob(f"{member.path.stem}.*"):
            shutil.copy(source, root / "kernels")
        for reference in (member.path.parent / "references").glob("*.py"):
            shutil.copy(reference, root / "references")


def judge(member: Member, report: Report | None, left_out: Mapping[str, str]) -> Result:
    """Compare what became of a member with what its card says."""
    expect, stem = member.expect, member.path.stem
    kernels = {Path(kernel.path).stem: kernel for kernel in report.kernels} if report else {}
    if stem in left_out or stem not in kernels:
        return _result(member, NOT_RUN, left_out.get(stem, "not in the report"))
    if expect.honest:
        last = kernels[stem].rung(expect.rung)
        fine = kernels[stem].stopped_at is None and last is not None and last.outcome == expect.outcome
        return _result(member, ACCEPTED if fine else REFUSED, "" if fine else _happened(kernels[stem], expect.rung))
    fine = _stopped_as_expected(kernels[stem], expect)
    return _result(member, STOPPED if fine else MISSED, "" if fine else _happened(kernels[stem], expect.rung))


def _result(member: Member, verdict: str, detail: str) -> Result:
    expect = member.expect
    expected = " ".join(filter(None, [expect.rung, expect.outcome, expect.reason]))
    return Result(member.path.stem, expect.class_, member.group, expect.title, expected, verdict, detail)


def _stopped_as_expected(kernel: KernelReport, expect: Expectation) -> bool:
    stopped = kernel.stopped_at
    if stopped is None or stopped.finding is None:
        return False
    reason = expect.reason or stopped.finding.reason
    return (expect.rung, expect.outcome, reason) == (stopped.rung, stopped.outcome, stopped.finding.reason)


def _happened(kernel: KernelReport, rung: str) -> str:
    """Where a kernel ended, in one line."""
    stopped = kernel.stopped_at
    if stopped is not None and stopped.finding is not None:
        first = stopped.finding.message.splitlines()[0][:120] if stopped.finding.message else ""
        return f"{stopped.rung} {stopped.outcome} {stopped.finding.reason}: {first}"
    last = kernel.rung(rung)
    why = f" ({last.finding.message[:120]})" if last is not None and last.finding is not None else ""
    return f"{rung} {last.outcome}{why}" if last is not None else f"{rung} was not climbed"


def gpu() -> str:
    """The name of the GPU that is here, or nothing."""
    from kernelci.workbench.device import find

    return find().name


def as_json(score: Score) -> str:
    """The score with every result, for programs."""
    records = [
        {
            "kernel": result.kernel, "class": result.class_, "group": result.group, "title": result.title,
            "expected": result.expected, "verdict": result.verdict, "detail": result.detail,
        }
        for result in score.results
    ]  # fmt: skip
    totals = {verdict: score.count(verdict) for verdict in (STOPPED, MISSED, ACCEPTED, REFUSED, NOT_RUN)}
    return json.dumps({"machine": score.machine, "totals": totals, "results": records}, indent=1)


def table(score: Score) -> str:
    """The score by class, then each miss with what happened instead, then what was not run and why."""
    lines = [f"{'CLASS':<8}{'BAD STOPPED':>12}{'HONEST PASSED':>15}{'NOT RUN':>9}"]
    for group, title in GROUPS.items():
        own = [result for result in score.results if result.group == group]
        if own:
            lines += ["", title, *(_row(name, own) for name in sorted({one.class_ for one in own}, key=_natural))]
    lines += ["", _row("total", score.results, "")]
    wrong = [result for result in score.results if result.verdict in (MISSED, REFUSED)]
    lines += ["", *(f"{one.verdict}: {one.kernel} ({one.class_})\n{_indented(one)}" for one in wrong)] if wrong else []
    idle = [result for result in score.results if result.verdict == NOT_RUN]
    reasons = sorted({result.detail for result in idle})
    for reason in reasons:
        names = [result.kernel for result in idle if result.detail == reason]
        lines += ["", f"not run here: {reason} ({len(names)})", f"  {', '.join(names)}"]
    return "\n".join(lines)


def _row(name: str, results: Iterable[Result], only: str | None = None) -> str:
    own = [result for result in results if only == "" or result.class_ == name]
    tally = {verdict: sum(one.verdict == verdict for one in own) for verdict in (*_BAD, *_HONEST, NOT_RUN)}
    bad, honest = (_share(tally[good], tally[good] + tally[ill]) for good, ill in (_BAD, _HONEST))
    return f"{name:<8}{bad:>12}{honest:>15}{tally[NOT_RUN] or '':>9}".rstrip()


_BAD, _HONEST = (STOPPED, MISSED), (ACCEPTED, REFUSED)


def _share(good: int, total: int) -> str:
    return f"{good}/{total}" if total else ""


def _indented(result: Result) -> str:
    return f"  {result.title}\n  expected: {result.expected}\n  happened: {result.detail}"


def _natural(name: str) -> tuple[str, int]:
    """m05 before m11, B2 before B11."""
    number = re.search(r"\d+", name)
    return name[:1], int(number[0]) if number else 0
