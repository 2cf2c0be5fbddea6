"""What the verbs of the night print. Names may come from anywhere: they are cleaned."""

from collections.abc import Sequence

from kernelci import inert
from kernelci.history import Event
from kernelci.model import Report
from kernelci.nightly.bisect import Found
from kernelci.nightly.detect import Tonight
from kernelci.nightly.remeasure import Paired


def untimed(report: Report) -> str:
    """What a night on a machine without a GPU lacks; nothing for another."""
    if report.environment.gpu:
        return ""
    return "no GPU on this machine: the night has no times, and rows of GPUs become stale; see kernelci doctor\n"


def tonight(found: Tonight) -> str:
    """Suspects, a line each."""
    lines = [f"environment  {inert.line(gpu)}: {inert.line(why)}" for gpu, why in found.environment]
    for each in found.suspects:
        where = inert.line(f"{each.kernel} {each.case} on {each.gpu}")
        span = f"{each.good[:10] or '?'}..{each.bad[:10] or '?'}"
        lines.append(f"suspected    {where}: {each.size:+.1%} since {each.since} ({each.kind}, {span})")
    if found.left:
        lines.append(f"and {found.left} more, beyond the budget")
    return "".join(f"{line}\n" for line in lines or ["nothing seems to have changed"])


def answers(events: Sequence[Event]) -> str:
    """What was measured again, a line each."""
    lines = (inert.line(f"{each.kernel} {each.case} on {each.gpu}: ") + " " + _said(each) for each in events)
    return "".join(f"{line}\n" for line in lines) or "nothing to measure again\n"


def _said(event: Event) -> str:
    if event.kind == "dated":
        return f"first slow: {event.bad}"
    return paired(Paired(event.verdict, event.delta, event.low, event.high, event.text))


def paired(found: Paired) -> str:
    """`SLOWER +2.1% [+1.8%, +2.4%]`."""
    if found.delta is None:
        return inert.line(f"{found.verdict} {found.text}".strip(), 200)
    ends = "" if found.low is None or found.high is None else f" [{found.low:+.1%}, {found.high:+.1%}]"
    return f"{found.verdict} {found.delta:+.1%}{ends}"


def bisected(found: Found) -> str:
    """Every commit that was measured, and what is left."""
    lines = [f"{commit[:12]}  {paired(answer)}" for commit, answer in found.tried]
    return "".join(f"{line}\n" for line in (*lines, _concluded(found)))


def _concluded(found: Found) -> str:
    names = ", ".join(commit[:12] for commit in found.commits)
    if len(found.commits) == 1:
        return f"first slow: {found.commits[0]}"
    if found.commits:
        return f"one of {len(found.commits)}: {names}; what lies between gave no answer"
    if found.is_open and found.tried[0][1].delta is None:
        return "not decided: the bad commit could not be measured, for the reason above"
    if found.is_open:
        return "not decided: the bad commit could not be told from the good one; try again, or an older good one"
    if found.tried:
        return "no commit made it slower: the bad one is not slower than the good one on this GPU"
    return "no commit between the two touches the kernel's folder, its reference or the configuration"
