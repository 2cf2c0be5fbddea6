"""Which jobs this host admits: decided here, since a pull request can edit its own workflow's file.

What a job is comes from GitHub's runner before the first step runs. A workflow file at `refs/pull/N/merge` is what the
pull request made of it: that only jobs of a reusable workflow come is a runner group's setting, and not known here.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta, Struct

from kernelci import inert
from kernelci.config import RunnerOptions

Text = Annotated[str, Meta(max_length=1000)]
_PULL = re.compile(r"refs/pull/(\d{1,9})/merge")
# Events whose job may hold a change whatever its ref says: `/kernelci profile` starts one on the base's branch.
NO_BRANCH = frozenset(
    {"pull_request", "pull_request_target", "pull_request_review", "workflow_run", "issue_comment", "workflow_dispatch"}
)


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """A job, in the words of GitHub's runner (its GITHUB_… variables)."""

    repository: Text = ""
    workflow_ref: Text = ""
    """OWNER/NAME/PATH@REF of the workflow that was set off; within a reusable one that of its caller."""
    ref: Text = ""
    event_name: Text = ""
    actor: Text = ""
    triggering_actor: Text = ""
    run_id: Text = ""
    run_attempt: Text = ""
    sha: Text = ""
    job: Text = ""

    @property
    def text(self) -> str:
        """One harmless line."""
        said = f"{self.repository} run {self.run_id}, job {self.job}: {self.event_name} of {self.ref} by {self.actor}"
        return inert.line(said, 300)


def refusal(options: RunnerOptions, claim: Claim) -> str:
    """Why this host does not take the job; empty if it does."""
    asked: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("repository", claim.repository, options.repositories or (options.repository,)),
        ("workflow", claim.workflow_ref, options.workflows),
        ("ref", claim.ref, options.refs),
        ("event", claim.event_name, options.events),
        ("actor", claim.actor, options.actors),
        ("actor of the rerun", claim.triggering_actor or claim.actor, options.actors),
    )
    refused = [(what, said) for what, said, admitted in asked if not _among(said, admitted)]
    return "; ".join(f"{what} {inert.line(said, 200)!r} is not admitted on this host" for what, said in refused)


def _among(said: str, admitted: Iterable[str]) -> bool:
    return bool(said) and any(fnmatchcase(said, pattern) for pattern in admitted)


def trusted(options: RunnerOptions, claim: Claim) -> bool:
    """Whether only what the base branch holds runs in this job."""
    return claim.event_name not in NO_BRANCH and _among(claim.ref, options.trusted_refs)


def cache_key(options: RunnerOptions, claim: Claim) -> str:
    """Whose caches the job starts from: `base`, `pull-7`, or none (an empty text) for what is neither."""
    if trusted(options, claim):
        return "base"
    match = _PULL.fullmatch(claim.ref)
    return f"pull-{int(match[1])}" if match and claim.event_name == "pull_request" else ""
