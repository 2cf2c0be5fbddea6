"""What `selftest` does: climb with a corpus of known kernels and compare what became of each with what its card says.

Bad ones must be stopped by the rung, and for the reason, that their card names; honest ones that look suspicious must
pass. So a user sees what the harness stops on their own runner.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kernelci import catalog, config, resources
from kernelci.card import Expectation, parse
from kernelci.catalog import Kernel
from kernelci.errors import CardError, ConfigError, RunnerBroken
from kernelci.model import KernelReport, Report, RungResult

# Short deadlines: what hangs in the corpus hangs for ever, and what is honest takes milliseconds.
OPTIONS: dict[str, Any] = {
    "interpreter_elements": 2**14,
    "interpreter_timeout_s": 15.0,
    "call_timeout_s": 20.0,
    "memory_bytes": 2 * 2**30,
    "targets": ("sm_90a",),
}
GPU_LANES = 12  # each kernel of the corpus is small, and mostly waits for its own processes
LAST_RUNG = "correctness"  # members that are stopped no later climb no further; the others as far as their own rung
BASE = "base"  # the folder of the other side
MESSAGE = 200  # characters of a message that are shown
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


Say = Callable[[str], object]
Progress = Callable[[Kernel, RungResult], None]


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


def run(classes: tuple[str, ...] = (), tier: str = "pr", say: Say | None = None) -> Score:
    """Climb with the members of these classes in a project that is thrown away; `say` hears of each as it ends.

    Raises ConfigError where there is no member.
    """
    with tempfile.TemporaryDirectory(prefix="kernelci-selftest-") as folder:
        members = [member for member in corpus(resources.folder(resources.CORPUS)) if member.belongs(classes)]
        if not members:
            raise ConfigError(f"no class {', '.join(classes)}", hint=f"groups: {', '.join(filter(None, GROUPS))}")
        machine = gpu()
        lanes = GPU_LANES if machine else 2
        left_out = reasons_not_to_run(members, machine, tier)
        climbing = [member for member in members if member.path.stem not in left_out]
        report = climb(Path(folder), climbing, tier, progress=progress(climbing, say), lanes=lanes)
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
    if member.expect.cpu and gpu:
        return "only the interpreter shows it"
    if member.expect.tier not in ("pr", tier):
        return f"only --tier {member.expect.tier} has the case that shows it"
    return ""


def progress(members: Iterable[Member], say: Say | None) -> Progress | None:
    """What tells of each member, once it is stopped or has climbed its own rung, what came and what was expected."""
    known, told = {member.path.stem: member.expect for member in members}, set[str]()
    if say is None:
        return None

    def tell(kernel: Kernel, result: RungResult) -> None:
        stem, expect = kernel.path.stem, known[kernel.path.stem]
        climbs_on = result.outcome in ("PASSED", "SKIPPED") and result.rung != expect.rung
        if stem not in told and not climbs_on:
            told.add(stem)
            say(f"{stem}: {_ended(result)} ({result.duration_s:.1f} s; expected: {_expected(expect)})")

    return tell


def climb(
    root: Path,
    members: Iterable[Member],
    tier: str = "pr",
    *,
    rungs: tuple[str, ...] = (),
    progress: Progress | None = None,
    **flags: Any,
) -> Report | None:
    """Climb in a fresh project at `root`, the honest ones last; None where there is nothing to climb with."""
    from kernelci import basing, ladder

    members = tuple(members)
    if not members:
        return None
    lay_out(root, members)
    options = config.load(root, {}, {**OPTIONS, "cache": str(root / "cache"), **flags})
    found = catalog.scan(root, options)
    reports = []
    for names, wanted, opposed in _groups(members, rungs):
        order = sorted(names, key=lambda name: names[name].expect.honest)
        kernels = tuple(kernel for name in order for kernel in found.kernels if kernel.path.stem == name)
        base = basing.in_folder(root / BASE) if opposed else None
        plan = ladder.Plan(kernels, root / "out", wanted, tier=tier, base=base)
        reports.append(ladder.climb(found, options, plan, progress))
    climbed = tuple(kernel for report in reports for kernel in report.kernels)
    return msgspec.structs.replace(reports[0], kernels=climbed)


def _groups(members: Iterable[Member], rungs: tuple[str, ...]) -> list[tuple[dict[str, Member], tuple[str, ...], bool]]:
    """The members by stem with the rungs that they climb, and whether against a base: first those that are stopped by
    correctness at the latest, then the others by their own rungs."""
    from kernelci.rungs import ORDER

    early = set(ORDER[: ORDER.index(LAST_RUNG) + 1])
    groups: dict[tuple[str, bool], dict[str, Member]] = {(LAST_RUNG, False): {}}
    for member in members:
        rung = LAST_RUNG if member.expect.rung in early else member.expect.rung
        groups.setdefault((rung, bool(member.expect.base)), {})[member.path.stem] = member
    return [(own, rungs or (rung,), opposed) for (rung, opposed), own in groups.items() if own]


def lay_out(root: Path, members: Iterable[Member]) -> None:
    """Copy the members with the files beside them, their bases under their own names, and the corpus's references."""
    for folder in (root / "kernels", root / "references", root / BASE / "kernels"):
        folder.mkdir(parents=True)
    for member in members:
        corpus, stem, base = member.path.parent, member.path.stem, member.expect.base
        for source in corpus.glob(f"{stem}.*"):
            shutil.copy(source, root / "kernels")
        for source in corpus.glob(f"{base}.*") if base else ():
            shutil.copy(source, root / BASE / "kernels" / f"{stem}{source.suffix}")
        for reference in (corpus / "references").glob("*.py"):
            shutil.copy(reference, root / "references")


def judge(member: Member, report: Report | None, left_out: Mapping[str, str]) -> Result:
    """Compare what became of a member with what its card says."""
    expect, stem = member.expect, member.path.stem
    kernels = {Path(kernel.path).stem: kernel for kernel in report.kernels} if report else {}
    if stem in left_out or stem not in kernels:
        return _result(member, NOT_RUN, left_out.get(stem, "not in the report"))
    fine = (_passed if expect.outcome == "PASSED" else _stopped_as_expected)(kernels[stem], expect)
    verdict = (ACCEPTED if fine else REFUSED) if expect.honest else (STOPPED if fine else MISSED)
    return _result(member, verdict, "" if fine else _happened(kernels[stem], expect.rung))


def _result(member: Member, verdict: str, detail: str) -> Result:
    expect = member.expect
    return Result(member.path.stem, expect.class_, member.group, expect.title, _expected(expect), verdict, detail)


def _expected(expect: Expectation) -> str:
    said = f"«{expect.said}»" if expect.said else ""
    return " ".join(filter(None, [expect.rung, expect.outcome, expect.reason, "/".join(expect.verdicts), said]))


def _passed(kernel: KernelReport, expect: Expectation) -> bool:
    """Whether it passed its rung, with a verdict that it may have and a note that says what is to be said.

    Who could not be measured has gained nothing either.
    """
    last, stopped = kernel.rung(expect.rung), kernel.stopped_at
    if stopped is not None and expect.verdicts and not expect.said:
        return (stopped.rung, stopped.outcome) == (expect.rung, "INVALID")
    if stopped is not None or last is None or last.outcome != expect.outcome:
        return False
    return _says(last, expect.said) and (not expect.verdicts or _verdicts(last) <= set(expect.verdicts))


def _verdicts(rung: RungResult) -> set[str]:
    """What the rows' times are called; empty text where one was not compared."""
    return {str(row.verdict) for row in rung.rows}


def _says(rung: RungResult, said: str) -> bool:
    """Whether a text stands in the rung's finding or in one of its notes."""
    notes = [*rung.notes, *(note for row in rung.rows for note in row.notes)]
    return any(said in text for text in [rung.finding.message if rung.finding else "", *notes])


def _stopped_as_expected(kernel: KernelReport, expect: Expectation) -> bool:
    stopped = kernel.stopped_at
    if stopped is None or stopped.finding is None:
        return False
    reason = expect.reason or stopped.finding.reason
    came = (stopped.rung, stopped.outcome, stopped.finding.reason)
    return (expect.rung, expect.outcome, reason) == came and _says(stopped, expect.said)


def _happened(kernel: KernelReport, rung: str) -> str:
    """Where a kernel ended, in one line."""
    last = kernel.stopped_at or kernel.rung(rung)
    return _ended(last) if last is not None else f"{rung} was not climbed"


def _ended(rung: RungResult) -> str:
    """How a rung ended: its reason and the first line of its message, or the verdicts and notes of its rows."""
    if rung.finding is not None:
        first = next(iter(rung.finding.message.splitlines()), "")[:MESSAGE]
        return f"{rung.rung} {rung.outcome} {rung.finding.reason}: {first}"
    verdicts = "/".join(sorted(filter(None, _verdicts(rung))))
    notes = "; ".join(dict.fromkeys(note for row in rung.rows for note in row.notes))[:MESSAGE]
    return " ".join(filter(None, [rung.rung, str(rung.outcome), verdicts, f"({notes})" if notes else ""]))


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
