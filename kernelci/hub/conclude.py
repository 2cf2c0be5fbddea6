"""What a report means for a pull request: the check's conclusion, the sentence, and who does what next. Pure.

A required check counts `neutral` and `skipped` as passed, so these are given only where the change is not in doubt.
What the change touches comes from GitHub's own list of files, never from the report.
"""

from typing import Any, Literal

from msgspec import Struct

from kernelci import config, digest, second
from kernelci.comparison import times
from kernelci.hub import judge
from kernelci.hub.pull import Files
from kernelci.model import KernelReport, Report
from kernelci.reasons import REASONS, Outcome

Word = Literal["success", "neutral", "skipped", "action_required", "failure"]
State = Literal["success", "failure", "error", "pending"]
_STATES: dict[Word, State] = {
    "success": "success", "neutral": "success", "skipped": "success",
    "action_required": "failure", "failure": "failure",
}  # fmt: skip
_RANKS: dict[Word, int] = {"success": 0, "skipped": 0, "neutral": 1, "action_required": 2, "failure": 3}
_BEFORE = ("candidate-start", "reference", "no-cases")


class Conclusion(Struct, frozen=True):
    """How a check ends. `retry`: the run is to be repeated once before this holds."""

    word: Word
    title: str
    who: str
    """Who does what next, in one sentence."""
    broken: bool = False
    """The runner or the reference is to blame."""
    retry: bool = False

    @property
    def state(self) -> State:
        """Of the commit status, which has no word for neutral."""
        return "error" if self.broken else _STATES[self.word]

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return _RANKS[self.word]


class Touched(Struct, frozen=True):
    """What a change touches: files that judge, and kernel files that it adds, changes and removes."""

    judge: tuple[str, ...]
    kernels: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    complete: bool = True
    offer: str = ""
    """Who can have the change's own judge heard, and how; empty where it brings none that could be."""


def touched(files: Files, options: config.Config, prefix: str = "") -> Touched:
    """Sort a pull request's files by what they have to do with judging."""
    folder = f"{prefix}{options.kernels.strip('/')}/"
    gone = {file.previous_filename for file in files.files if file.previous_filename}
    gone |= {file.filename for file in files.files if file.status == "removed"}
    here = {file.filename: file.status for file in files.files if file.status != "removed"}
    roles = {path: judge.role(path, options, prefix) for path in files.paths}
    return Touched(
        tuple(sorted(path for path, role in roles.items() if role is not None)),
        tuple(sorted(path for path in here if _is_kernel(path, folder))),
        tuple(sorted(path for path, status in here.items() if status == "added" and _is_kernel(path, folder))),
        tuple(sorted(path for path in gone - set(here) if _is_kernel(path, folder))),
        files.complete,
        second.how(options.owners) if set(roles.values()) & set(second.ROLES) else "",
    )


def _is_kernel(path: str, folder: str) -> bool:
    """A Python file or a .cu in the folder of a reference."""
    inner = path.removeprefix(folder)
    return path.startswith(folder) and inner.count("/") == 1 and inner.endswith((".py", ".cu"))


def conclude(report: Report, change: Touched, attempt: int = 1, prefix: str = "") -> Conclusion:
    """The conclusion. A changed judge comes first, then what is wrong, then what is missing."""
    if change.judge or not change.complete:
        return _judge_changed(report, change)
    if report.outcome in (Outcome.FAILED, Outcome.INVALID):
        return _stopped(report)
    if report.outcome is Outcome.BROKEN:
        return _broken(report, attempt)
    if open_ := _open(report, change, prefix):
        return Conclusion("action_required", open_, "A maintainer: see to it that these are judged.")
    if not report.kernels:
        return Conclusion("skipped", "No kernel is touched.", "Nobody: there is nothing to judge.")
    if unknown := times(report).unknown:
        count = len(unknown)
        text = f"Right, but {count} time{' is' if count == 1 else 's are'} UNKNOWN: neither slower nor the same."
        return Conclusion("neutral", text, "A reviewer: decide whether that is enough, or ask for `/kernelci rerun`.")
    if slower := times(report).slower:
        text = (
            f"{digest.headline(report).sentence} {len(slower)} {'case is' if len(slower) == 1 else 'cases are'} SLOWER."
        )
        return Conclusion("success", text, "A reviewer: decide whether what is slower may be so; it blocks nothing.")
    return Conclusion("success", digest.headline(report).sentence, "Nobody: a reviewer can merge.")


def meaning(found: Conclusion, change: Touched) -> dict[str, Any]:
    """The fields of a Publication that say what was concluded of a change."""
    return {
        "conclusion": found.word, "rank": found.rank, "title": found.title, "who": found.who,
        "judge": change.judge, "added": change.added, "removed": change.removed,
    }  # fmt: skip


def _judge_changed(report: Report, change: Touched) -> Conclusion:
    files = f"{len(change.judge)} file{'' if len(change.judge) == 1 else 's'}" if change.complete else "too many files"
    title = f"The change touches the judge ({files}); the base's judge says {report.outcome}."
    who = "An owner: review the files below; this check does not vouch for them and can't turn green by itself."
    if report.second is not None:
        who += " What the change's own judge says stands below, and vouches for nothing either."
    elif change.offer:
        who += f" Besides, {change.offer}."
    return Conclusion("action_required", title, who)


def _stopped(report: Report) -> Conclusion:
    found = digest.headline(report)
    return Conclusion("failure", found.sentence, f"The author: {_lower(found.next_step)}")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _broken(report: Report, attempt: int) -> Conclusion:
    """The runner's or the reference's fault, unless a kernel had started: then it may be the kernel's doing."""
    found = digest.headline(report)
    if not any(_started(kernel) for kernel in report.kernels):
        who = f"A maintainer: {_lower(found.next_step)} No kernel had started, so the change is not to blame."
        return Conclusion("neutral", found.sentence, who, broken=True)
    if attempt == 1:
        who = "Nobody yet: the run is repeated once, since a kernel was running when it broke."
        return Conclusion("action_required", found.sentence, who, broken=True, retry=True)
    who = f"A maintainer: {_lower(found.next_step)} It broke twice with kernels running: look at the change too."
    return Conclusion("action_required", found.sentence, who, broken=True)


def _started(kernel: KernelReport) -> bool:
    """Whether code of this kernel ran, as far as the report can tell; compiling counts."""
    for rung in kernel.rungs:
        if rung.rung == "precheck" or rung.outcome is Outcome.SKIPPED:
            continue
        if rung.outcome is not Outcome.BROKEN or (rung.finding and rung.finding.reason not in _BEFORE):
            return True
    return False


def _open(report: Report, change: Touched, prefix: str) -> str:
    """What keeps a report from being green although nothing in it is wrong; empty if nothing does."""
    if report.change is not None and report.change.incomplete:
        return f"Incomplete: {report.change.incomplete[:200]}"
    judged = {f"{prefix}{kernel.path}": kernel for kernel in report.kernels}
    missing = [path for path in change.kernels if not _covered(path, judged)]
    if missing:
        return f"{len(missing)} changed kernel files are not in the report, {missing[0]} first."
    unproven = [kernel for path, kernel in judged.items() if _changed(path, change) and not _correct(kernel)]
    if unproven:
        return f"{len(unproven)} changed kernels were not checked for correctness, {unproven[0].name} first."
    if report.kernels and report.outcome is Outcome.SKIPPED:
        return digest.headline(report).sentence
    return ""


def _covered(path: str, judged: dict[str, KernelReport]) -> bool:
    """A kernel file, or a .cu whose Python file of the same stem was judged."""
    return path in judged or (path.endswith(".cu") and f"{path.removesuffix('.cu')}.py" in judged)


def _changed(path: str, change: Touched) -> bool:
    return path in change.kernels or f"{path.removesuffix('.py')}.cu" in change.kernels


def _correct(kernel: KernelReport) -> bool:
    found = kernel.rung("correctness")
    return found is not None and found.outcome is Outcome.PASSED


def without_report(why: str) -> Conclusion:
    """The run left no report, or one that is refused."""
    return Conclusion(
        "action_required", why, f"A maintainer: {_lower(REASONS['artifact-missing'].next_step)}", broken=True
    )
