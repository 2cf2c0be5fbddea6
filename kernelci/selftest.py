"""What `selftest` does: climb with a corpus of known kernels and compare what became of each with what its card says.

Bad ones must be stopped by the rung, and for the reason, that their card names; honest ones that look suspicious must
pass. So a user sees what the harness stops on their own runner.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kernelci import catalog, config, resources, results
from kernelci.card import Expectation, parse
from kernelci.catalog import Kernel
from kernelci.errors import CardError, ConfigError, RunnerBroken
from kernelci.model import EXECUTING, KernelReport, Report, RungResult
from kernelci.score import ACCEPTED, GROUPS, MISSED, NOT_RUN, REFUSED, STOPPED, Result, Score

# Short deadlines: what hangs in the corpus hangs for ever, and what is honest takes milliseconds.
OPTIONS: dict[str, Any] = {
    "interpreter_elements": 2**14,
    "interpreter_rows": 1030,  # 1.5 s at the most; the tallest case of an rmsnorm has 1029
    "interpreter_timeout_s": 20.0,
    "call_timeout_s": 20.0,
    "memory_bytes": 2 * 2**30,
    "targets": ("sm_90a",),
    "baselines": False,  # no card says anything of them, and they take longer than a member
}
GPU_LANES = 12  # each kernel of the corpus is small, and mostly waits for its own processes
LONG = ("sanitize", "perturb")  # rungs that take long beside other kernels: what climbs them begins first
LAST_RUNG = "correctness"  # members that are stopped no later climb no further; the others as far as their own rung
SHOWN_RUNG = "dump"
BASE = "base"  # the folder of the other side
MESSAGE = 200  # characters of a message that are shown
INTERRUPTED = "interrupted"


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


def run(
    classes: tuple[str, ...] = (),
    tier: str = "pr",
    say: Say | None = None,
    gpus: str | None = None,
    out: Path | None = None,
) -> Score:
    """Climb with the members of these classes in a project that is thrown away; `say` hears of each as it ends.

    `gpus` is the option of that name; `out`: a folder that keeps the report. After an interrupt the members that were
    judged by then have their verdicts, and the others were not run. Raises ConfigError where there is no member, or no
    such GPU.
    """
    with tempfile.TemporaryDirectory(prefix="kernelci-selftest-", ignore_cleanup_errors=True) as folder:
        members = [member for member in corpus(resources.folder(resources.CORPUS)) if member.belongs(classes)]
        if not members:
            raise ConfigError(f"no class {', '.join(classes)}", hint=f"groups: {', '.join(filter(None, GROUPS))}")
        machine = gpu()
        left_out = reasons_not_to_run(members, machine, tier)
        climbing = [member for member in members if member.path.stem not in left_out]
        flags: dict[str, Any] = {"lanes": GPU_LANES if machine else 2, "gpus": gpus}
        interrupted = False
        try:
            report = climb(Path(folder), climbing, tier, progress=progress(climbing, say), **flags)
        except KeyboardInterrupt:
            report, interrupted = merged(Path(folder)), True
        if out is not None and report is not None:
            out.mkdir(parents=True, exist_ok=True)
            results.write(report, out)
    return Score(tuple(judge(member, report, left_out) for member in members), machine or "no GPU", interrupted)


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
    """Climb in a fresh project at `root`, each as far as its card says or, if given, up to these rungs; None where
    there is nothing to climb with. After an interrupt `merged` has what was found."""
    from kernelci import basing, ladder

    members = tuple(members)
    if not members:
        return None
    lay_out(root, members)
    options = config.load(root, {}, {**OPTIONS, "cache": str(root / "cache"), **flags})
    found = catalog.scan(root, options)
    base = basing.in_folder(root / BASE) if any(member.expect.base for member in members) else None
    try:
        for number, group in enumerate(_groups(members, gpu())):
            known = {member.path.stem: member for member in group}
            kernels = [kernel for kernel in found.kernels if kernel.path.stem in known]
            kernels.sort(key=lambda kernel: _turn(known[kernel.path.stem]))
            own = {} if rungs else {kernel.name: _rungs(known[kernel.path.stem]) for kernel in kernels}
            plan = ladder.Plan(tuple(kernels), root / f"out{number}", rungs, own, tier=tier, base=base)
            ladder.climb(found, options, plan, progress)
    finally:
        report = merged(root)
    return report


def merged(root: Path) -> Report | None:
    """The reports that climbs in this project have left, as one, which then lies in `out`; None where there is none."""
    reports = [results.read(path.parent) for path in sorted(root.glob(f"out[0-9]*/{results.FILE_NAME}"))]
    if not reports:
        return None
    kernels = tuple(kernel for report in reports for kernel in report.kernels)
    whole = msgspec.structs.replace(reports[0], kernels=kernels)
    (root / "out").mkdir(exist_ok=True)
    results.write(whole, root / "out")
    return whole


def _groups(members: Iterable[Member], machine: str) -> list[list[Member]]:
    """Those whose machine code is shown, and the others, of which none is to wait for its disassembly; where a GPU is,
    and so are many cores, all together: starting twice takes longer."""
    shown: dict[bool, list[Member]] = {}
    for member in members:
        shown.setdefault(member.expect.rung == SHOWN_RUNG and not machine, []).append(member)
    return [shown[key] for key in sorted(shown, reverse=True)]


def _turn(member: Member) -> tuple[bool, bool, bool]:
    """What takes long begins first, while others keep the other lanes busy; what is timed against a base comes last."""
    expect = member.expect
    return not (expect.rung in LONG or expect.reason == "hang"), bool(expect.base), expect.honest


def _rungs(member: Member) -> tuple[str, ...]:
    """How far a member climbs: to its own rung, and at least to one that all who are stopped early have in common."""
    from kernelci.rungs import ORDER

    return (LAST_RUNG,) if member.expect.rung in ORDER[: ORDER.index(LAST_RUNG)] else (member.expect.rung,)


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
    if stem in left_out or stem not in kernels or _cut_off(kernels[stem], expect):
        return _result(member, NOT_RUN, left_out.get(stem, INTERRUPTED))
    kernel = kernels[stem]
    if _by_luck(kernel, expect):
        return _result(member, STOPPED, _happened(kernel, expect.rung))
    fine = (_passed if expect.outcome == "PASSED" else _stopped_as_expected)(kernel, expect)
    verdict = (ACCEPTED if fine else REFUSED) if expect.honest else (STOPPED if fine else MISSED)
    return _result(member, verdict, "" if fine else _happened(kernel, expect.rung))


def _cut_off(kernel: KernelReport, expect: Expectation) -> bool:
    """Whether the run ended before this kernel had climbed its rung, and nothing had stopped it by then."""
    last = kernel.rung(expect.rung)
    cut = last is not None and last.finding is not None and last.finding.reason == INTERRUPTED
    return cut and kernel.stopped_at is None


def _by_luck(kernel: KernelReport, expect: Expectation) -> bool:
    """Whether a rung that runs it has seen already what its own rung is sure to see: a race may show anywhere."""
    stopped = kernel.stopped_at
    if stopped is None or not expect.luck or stopped.rung == expect.rung:
        return False
    return stopped.rung in EXECUTING and stopped.outcome == "FAILED"


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
    """How a rung ended: its reason and the first line of its message, or the verdicts of its rows, tools that were
    skipped, and notes."""
    if rung.finding is not None:
        first = next(iter(rung.finding.message.splitlines()), "")[:MESSAGE]
        return f"{rung.rung} {rung.outcome} {rung.finding.reason}: {first}"
    verdicts = "/".join(sorted(filter(None, _verdicts(rung))))
    rows = rung.rows if rung.rung == "sanitize" else ()  # a tool that was cut off has seen nothing, though others pass
    idle = [f"{row.case} {row.outcome} {row.finding.reason}" for row in rows if row.finding is not None]
    notes = "; ".join(dict.fromkeys([*idle, *(note for row in rung.rows for note in row.notes)]))[:MESSAGE]
    return " ".join(filter(None, [rung.rung, str(rung.outcome), verdicts, f"({notes})" if notes else ""]))


def gpu() -> str:
    """The name of the GPU that is here, or nothing."""
    from kernelci.workbench.device import find

    return find().name
