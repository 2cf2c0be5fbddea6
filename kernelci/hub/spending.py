"""How much GPU time the runs of a pull request have taken, as GitHub tells it: their jobs, from start to end.

Runs are those of the head's branch and repository. A job is one on a GPU by its name in the reusable workflow, which a
change can't edit; what the calling workflow puts before that name doesn't matter.
"""

import datetime
import re
from pathlib import Path

from msgspec import Struct

from kernelci import budget
from kernelci.config import BudgetOptions
from kernelci.git import Repository
from kernelci.hub import base
from kernelci.hub.client import Client, connect
from kernelci.hub.event import Id
from kernelci.hub.pull import Pull, of_event, runs_of
from kernelci.hub.rehearse import options_at
from kernelci.model import Budget

MORE = "somebody of this repository can set the label kernelci:gpu for this commit"
LIMIT = 100  # newest runs that are looked at
_ON_GPU = re.compile(r"(?:.* / )?(?:gpu|second)(?: \(.*\))?")


class Job(Struct, frozen=True):
    """A job of a run's attempt."""

    name: str
    status: str
    conclusion: str | None
    started_at: datetime.datetime
    completed_at: datetime.datetime | None = None
    run_attempt: Id = 1

    @property
    def took_gpu(self) -> bool:
        """Whether it had a runner with a GPU."""
        began = self.status in ("in_progress", "completed") and self.conclusion != "skipped"
        return began and _ON_GPU.fullmatch(self.name) is not None

    def minutes(self, now: datetime.datetime) -> float:
        """How long it took, or has taken so far."""
        return max(((self.completed_at or now) - self.started_at).total_seconds(), 0.0) / 60


def left(client: Client, pull: Pull, options: BudgetOptions) -> Budget | None:
    """What is left of the base's budget; None, without a request, where there is none. Raises KernelciError."""
    if budget.left(options, 0.0, 0) is None:
        return None
    now = datetime.datetime.now(datetime.UTC)
    minutes, attempts = 0.0, set()
    for run in runs_of(client, pull, LIMIT):
        for job in client.pages(f"actions/runs/{run.id}/jobs", Job, key="jobs", filter="all", limit=1000):
            if job.took_gpu:
                minutes += job.minutes(now)
                attempts.add((run.id, job.run_attempt))
    return budget.left(options, minutes, len(attempts))


def asked(root: Path, repository: str, number: int, commit: str = "") -> Budget | None:
    """The budget of a pull request by its number; the base's configuration from a commit at `root`, else from GitHub.

    Without a budget nothing is asked of GitHub where the commit is given. Raises KernelciError.
    """
    options = options_at(Repository(root), commit).budget if commit else None
    if options is not None and budget.left(options, 0.0, 0) is None:
        return None
    client = connect(repository)
    pull = of_event(number) or client.get(f"pulls/{number}", Pull)
    return left(client, pull, options or base.options(client, pull.base.sha).budget)
