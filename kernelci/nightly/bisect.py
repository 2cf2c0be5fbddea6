"""Which commit made a kernel slower: candidates are measured against the good commit, in pairs, until one is left."""

import datetime
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from kernelci import config
from kernelci.errors import ConfigError
from kernelci.git import Repository
from kernelci.history import Event, event_file
from kernelci.nightly.branch import Branch
from kernelci.nightly.remeasure import MeasurePair, Paired

Judge = Callable[[str], Paired]
"""A commit against the good one."""
MOST = 3  # kernels whose slowing a night looks for the commit of


class Found(Struct, frozen=True):
    """The commits of which one did it, the oldest first: one where it could be told; none where no commit did.

    `tried`: every commit that was measured, in that order, with its answer.
    """

    commits: tuple[str, ...]
    tried: tuple[tuple[str, Paired], ...]

    @property
    def is_open(self) -> bool:
        """Whether it could not be told of the bad commit itself whether it is slower."""
        return bool(self.tried) and not self.commits and self.tried[0][1].verdict == "UNKNOWN"

    @property
    def paired(self) -> Paired | None:
        """What the first commit that is known to be slow showed."""
        return next((paired for commit, paired in self.tried if self.commits and commit == self.commits[-1]), None)


def search(commits: Sequence[str], judge: Judge) -> Found:
    """Find the first slow commit; `commits` come after the good one, the oldest first, and the last should be slow.

    A commit without an answer is passed over for its neighbours; if those leave it open, several commits remain.
    """
    known: dict[str, Paired] = {}

    def slow(commit: str) -> bool | None:
        if commit not in known:
            known[commit] = judge(commit)
        return {"SLOWER": True, "SAME": False, "FASTER": False}.get(known[commit].verdict)

    if not commits or not slow(commits[-1]):
        return Found((), tuple(known.items()))
    low, high = -1, len(commits) - 1  # commits[low] is good, commits[high] is slow
    while high - low > 1:
        between = sorted(range(low + 1, high), key=lambda at: abs(at - (low + high) / 2))
        at = next((place for place in between if slow(commits[place]) is not None), None)
        if at is None:
            break
        low, high = (low, at) if slow(commits[at]) else (at, high)
    return Found(tuple(commits[low + 1 : high + 1]), tuple(known.items()))


def candidates(root: Path, kernel: str, good: str, bad: str) -> tuple[str, ...]:
    """The commits after `good` up to `bad` that touch what a kernel's time follows from. Raises ConfigError."""
    repository = Repository(root)
    first, last = (repository.commit(name) for name in (good, bad))
    if repository.merge_base(first, last) != first:
        raise ConfigError(f"{good} does not come before {bad}", hint="name the good commit first")
    options = config.load(root)
    reference = kernel.partition("/")[0]
    names = (f"{options.kernels}/{reference}", f"{options.references}/{reference}.py", *config.FILES)
    # The repository's folder is its root, and so are the paths' beginnings.
    return repository.between(first, last, tuple(f"{repository.prefix}{name}" for name in names))


def culprits(
    root: Path, answers: Iterable[Event], measure: MeasurePair, most: int = MOST, until: float = math.inf
) -> tuple[Event, ...]:
    """The commits that did it, where one can be told: of tonight's SLOWER answers, one a kernel, the largest first.

    Where a single commit comes into question none is measured. No search begins after `until`, by time.monotonic().
    """
    slower = sorted((each for each in answers if each.verdict == "SLOWER"), key=lambda each: -(each.delta or 0.0))
    by_kernel = {each.kernel: each for each in reversed(slower)}
    largest = sorted(by_kernel.values(), key=lambda each: -(each.delta or 0.0))[:most]
    found = ((each, _culprit(root, each, measure)) for each in largest if time.monotonic() < until)
    return tuple(_dated(one, (each.kernel, each.case, each.gpu), each.since, each.night) for each, one in found if one)


def _culprit(root: Path, answer: Event, measure: MeasurePair) -> Found | None:
    """The one commit; None where there are none, or several left."""
    try:
        commits = candidates(root, answer.kernel, answer.good, answer.bad)
    except ConfigError:  # the checkout may lack it
        return None
    known = Paired(answer.verdict, answer.delta, answer.low, answer.high)
    if len(commits) == 1:
        return Found(commits, ((commits[0], known),))
    found = search(commits, lambda commit: measure(answer.kernel, answer.case, answer.good, commit))
    return found if len(found.commits) == 1 else None


def remember(
    branch: Branch | None, found: Found, row: tuple[str, str, str], since: datetime.date, today: datetime.date
) -> None:
    """Put the commit that was found into the history, as that of the change on a row (kernel, case, GPU)."""
    if branch is not None:
        branch.add(dict([event_file([_dated(found, row, since, today)])]), f"bisected: {row[0]}"[:200])


def _dated(found: Found, row: tuple[str, str, str], since: datetime.date, night: datetime.date) -> Event:
    answer = found.paired or Paired("SLOWER")
    return Event(
        night, "dated", *row, since, bad=found.commits[0], delta=answer.delta, low=answer.low, high=answer.high
    )  # fmt: skip
