"""`kernelci feedback`: what the newest head of a pull request got, in the same record as a local report gives.

Everything comes through the API and the run's own artifacts, under the same rules as in `publish`: nothing is executed.
"""

import re
import tempfile
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from kernelci import budget, feedback, inert
from kernelci.config import BudgetOptions
from kernelci.errors import ArtifactMissing, ConfigError, ReportError, unwritten
from kernelci.feedback import Action, Feedback, Remote
from kernelci.hub import REPORT, allowance, artifact, base, checks, limits, spending, unpack
from kernelci.hub.client import Client
from kernelci.hub.event import FULL_NAME, Run
from kernelci.hub.pull import Pull
from kernelci.model import Report

_NAME = re.compile(FULL_NAME)
_PLACE = re.compile(r"([^#]+)#([0-9]{1,9})")
_KEY = re.compile(r"([0-9]{1,15})\.([0-9]{1,6})")
POLL_S = 10.0
TIMEOUT_S = 3600.0
_ENDED = ("reported", "no-report", "closed")
_GOOD = ("", "success", "neutral", "skipped")


class Found(Struct, frozen=True):
    """What was found, and where its artifacts are."""

    feedback: Feedback
    pull: Pull
    run: Run | None = None


def place(text: str) -> tuple[str, int]:
    """`OWNER/REPO#N` in its parts. Raises ConfigError."""
    match = _PLACE.fullmatch(text)
    if match is None or not _NAME.fullmatch(match.group(1)):
        raise ConfigError(f"{text[:100]!r} names no pull request", hint="write OWNER/REPO#NUMBER")
    return match.group(1), int(match.group(2))


def fetch(client: Client, number: int, wait: bool = False, folder: Path | None = None) -> Feedback:
    """The feedback on a pull request; with `wait` once there is some, with `folder` its other artifacts too."""
    found = look(client, number)
    until = time.monotonic() + TIMEOUT_S
    while wait and found.feedback.state not in _ENDED and time.monotonic() < until:
        time.sleep(min(POLL_S, client.patience.longest_s))
        found = look(client, number)
    said = _with_budget(client, found)
    if folder is None or found.run is None:
        return said
    return msgspec.structs.replace(said, artifacts=_unpacked(client, found.run, folder))


def _with_budget(client: Client, found: Found) -> Feedback:
    """What the pull request has left of the base's budget, whatever the report says of it."""
    try:
        options = base.options(client, found.pull.base.sha).budget
    except ConfigError:  # of the base: its owners' business
        options = BudgetOptions()
    left = spending.left(client, found.pull, options)
    actions = found.feedback.actions
    if budget.is_spent(left) and found.feedback.state != "closed":
        actions = (*actions, Action("maintainer", f"{budget.sentence(left)}: {spending.MORE}"))
    return msgspec.structs.replace(found.feedback, budget=left, actions=actions)


def look(client: Client, number: int) -> Found:
    """The state of the newest head, now."""
    pull = client.get(f"pulls/{number}", Pull)
    where = Remote(client.repository, number, pull.head.sha)
    if pull.state != "open":
        return Found(
            Feedback(feedback.SCHEMA_VERSION, "closed", sentence="The pull request is closed.", remote=where), pull
        )
    check = newest_check(client, pull.head.sha)
    run = _run(client, pull, check)
    if check is not None:
        where = msgspec.structs.replace(where, conclusion=check.conclusion or "", title=check.output.title or "")
    if run is None:
        text = "No run has begun for the newest head; a first contribution may have to be allowed by a maintainer."
        return Found(Feedback(feedback.SCHEMA_VERSION, "waiting", sentence=text, remote=where), pull)
    where = msgspec.structs.replace(where, run_url=run.html_url, attempt=run.run_attempt)
    if run.status != "completed":
        return Found(
            Feedback(feedback.SCHEMA_VERSION, "running", sentence="The run is not finished.", remote=where), pull
        )
    return _reported(client, pull, run, where)


def _reported(client: Client, pull: Pull, run: Run, where: Remote) -> Found:
    try:
        report = artifact.report(client, artifact.listed(client, run), run)
    except (ArtifactMissing, ReportError) as error:
        return Found(Feedback(feedback.SCHEMA_VERSION, "no-report", sentence=error.message, remote=where), pull, run)
    if report.second is not None:  # else nothing is asked
        report = _with_second(client, pull, run, report)
    return Found(msgspec.structs.replace(feedback.of(report), remote=where), pull, run)


def _with_second(client: Client, pull: Pull, run: Run, report: Report) -> Report:
    try:
        options = base.options(client, pull.base.sha)
    except ConfigError:  # of the base: its owners' business
        return msgspec.structs.replace(report, second=None)
    return allowance.kept(client, pull.number, run, options, report)


def newest_check(client: Client, sha: str) -> checks.Check | None:
    """Our newest check run on a commit."""
    found = client.pages(
        f"commits/{sha}/check-runs", checks.Check, key="check_runs", check_name=checks.NAME, filter="all", limit=1000
    )
    ours = [each for each in found if _KEY.fullmatch(each.external_id or "")]
    return max(ours, key=lambda each: each.id, default=None)


def _run(client: Client, pull: Pull, check: checks.Check | None) -> Run | None:
    """The run that a check names; without a check the newest run of the head that left a report, or is under way."""
    if check is not None and (key := _KEY.fullmatch(check.external_id or "")):
        return client.get(f"actions/runs/{key.group(1)}", Run)
    every = client.pages(
        "actions/runs", Run, key="workflow_runs", head_sha=pull.head.sha, event="pull_request", limit=100
    )
    runs = [run for run in every if run.head_repository == pull.head.repo]
    with_report = (run for run in runs[:10] if run.status == "completed" and REPORT in artifact.listed(client, run))
    return next((run for run in runs if run.status != "completed"), None) or next(with_report, next(iter(runs), None))


def _unpacked(client: Client, run: Run, folder: Path) -> tuple[str, ...]:
    """Every artifact of the attempt but the report, unpacked below `folder`; what is there already stays as it is."""
    paths: list[str] = []
    for kind, each in artifact.listed(client, run).items():
        if kind == REPORT or not re.fullmatch(r"kernelci-[a-z0-9-]{1,60}", kind):
            continue
        into = folder / f"{run.head_sha[:10]}-{run.id}-{run.run_attempt}" / kind
        if not into.exists():
            artifact.chosen({kind: each}, kind, run, limits.DUMPS)
            _unpack(client, each, into)
        paths += sorted(str(path) for path in into.rglob("*") if path.is_file())
    return tuple(paths)


def _unpack(client: Client, each: artifact.Artifact, into: Path) -> None:
    """Whole or not at all: into a folder beside, which then gets the right name. Raises ReportError."""
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=into.parent) as partial:
            archive = Path(partial) / "archive.zip"
            artifact.download(client, each, archive, limits.DUMPS)
            unpack.everything(archive, Path(partial) / "files", limits.DUMPS)
            (Path(partial) / "files").rename(into)
    except OSError as error:
        raise unwritten(into.parent, error, "name another with --artifacts") from error


def exit_code(found: Feedback) -> int:
    """0 nothing to change · 1 something is to change, or somebody has to act · 3 there is no report (yet)."""
    if found.state != "reported":
        return 3
    good = found.remote is None or found.remote.conclusion in _GOOD
    return 0 if good and not found.actions else 1


def text(found: Feedback) -> str:
    """For a terminal."""
    where = found.remote
    at = f"{where.repository}#{where.pull} at {where.head_sha[:10]}: " if where else ""
    lines = [f"{at}{found.state}"]
    if where and where.conclusion:
        lines.append(f"check: {where.conclusion}: {inert.line(where.title)}")
    lines.append(inert.line(found.sentence))
    for kernel in found.kernels:
        if (failure := kernel.first_failure) is not None:
            case = ", ".join(part for part in (failure.case, failure.target, failure.draw) if part)
            lines.append(inert.line(f"{kernel.name} at {failure.rung}: {failure.title} ({case or 'whole rung'})"))
            lines += [f"    {each}" for each in inert.head(failure.diagnosis, 12).split("\n")]
    for kernel in found.second.kernels if found.second is not None else ():
        at_rung = f" at {kernel.first_failure.rung}" if kernel.first_failure is not None else ""
        lines.append(inert.line(f"{kernel.name} (proves nothing): {kernel.outcome}{at_rung}"))
    for action in found.actions:
        lines.append(inert.line(f"next ({action.who}): {action.do}"))
        lines += [f"    {inert.line(action.command, 2000)}"] if action.command else []
    lines += [f"budget: {budget.sentence(found.budget)}"] if found.budget is not None else []
    lines += [f"artifact: {inert.line(path)}" for path in found.artifacts]
    return "\n".join(lines)
