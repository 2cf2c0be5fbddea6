"""The answer to `/kernelci profile`, once its run is through: what Nsight Compute saw, and where its files are.

Runs on `workflow_dispatch`, in a job beside a token, after the one that ran kernels: it takes that one's artifact
through the API under the rules of `publish`, and nothing else.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kernelci import digest, inert, units
from kernelci.errors import ArtifactMissing, EventError, ReportError, Superseded
from kernelci.hub import DUMPS, artifact, event, replies, sticky
from kernelci.hub.client import Client, Patience, connect
from kernelci.hub.event import Repository, Run, Sha
from kernelci.hub.limits import COMMENT_CHARACTERS
from kernelci.hub.pull import Pull
from kernelci.model import KernelReport, Metric, Report, Row
from kernelci.reporters.markdown import link

ROWS, NOTES, METRICS = 20, 10, 24  # shown of a kernel, and of a row
ROOM = COMMENT_CHARACTERS - 500


class Inputs(Struct, frozen=True):
    """What the workflow was asked for; whoever may start it may write to the repository."""

    pull: Annotated[str, Meta(pattern=r"^[0-9]{1,9}$")]
    sha: Sha
    profile: Annotated[str, Meta(max_length=300)] = "changed"


class Dispatch(Struct, frozen=True):
    """A `workflow_dispatch` event."""

    inputs: Inputs
    repository: Repository


def is_one(raw: object) -> bool:
    """Whether an event is of this kind."""
    return isinstance(raw, dict) and "inputs" in raw and "comment" not in raw


def tell(environ: Mapping[str, str], login: str = "", patience: Patience | None = None) -> str:
    """Answer on the pull request, once for each attempt; what was said. Raises KernelciError."""
    found = event.converted(event.load(environ), Dispatch)
    client = connect(found.repository.full_name, environ, patience)
    run = _run(client, environ)
    number, marker = int(found.inputs.pull), f"<!-- kernelci:profile {run.id}.{run.run_attempt} -->"
    pull = client.get(f"pulls/{number}", Pull)
    if pull.state != "open":
        raise Superseded(f"pull request {number} was closed")
    login = login or sticky.identity(client)
    if replies.posted(client, number, login, marker) is not None:
        return "answered before"
    text = "\n".join(_fitting(_page(client, found.inputs, run, pull)))
    replies.post(client, number, login, f"{marker}\n{text}\n")
    return text


def _fitting(lines: Iterator[str]) -> Iterator[str]:
    """The lines that a comment holds; what is left out is said."""
    room = ROOM
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            yield "\nLeft out for length: the rest is in results.json."
            return
        yield line


def _run(client: Client, environ: Mapping[str, str]) -> Run:
    number, attempt = environ.get("GITHUB_RUN_ID", ""), environ.get("GITHUB_RUN_ATTEMPT", "")
    if not (number.isdecimal() and attempt.isdecimal()):
        raise EventError(
            "GITHUB_RUN_ID or GITHUB_RUN_ATTEMPT is not set", hint="this command runs in a GitHub workflow"
        )
    found = client.get(f"actions/runs/{number}", Run)
    return msgspec.structs.replace(found, run_attempt=int(attempt))


def _page(client: Client, asked: Inputs, run: Run, pull: Pull) -> Iterator[str]:
    where = f"{inert.code(asked.profile)} at {inert.code(asked.sha[:10])}"
    yield f"### Profile of {where}\n"
    if pull.head.sha != asked.sha:
        yield "The pull request has moved on since.\n"
    listed = artifact.listed(client, run)
    try:
        report = artifact.report(client, listed, msgspec.structs.replace(run, head_sha=asked.sha))
        if report.change is None:
            raise ReportError("it does not say what it judges", code="artifact")
    except (ArtifactMissing, ReportError) as error:
        yield f"No report: {inert.prose(error.message)}. {link('Its log', run.html_url)} may say why."
        return
    files = listed.get(DUMPS)
    shown = link(files.name, f"{run.html_url}/artifacts/{files.id}") if files and not files.expired else "none"
    yield f"{inert.prose(digest.headline(report).sentence)} {link('Run', run.html_url)} · files: {shown}\n"
    yield from _kernels(report)


def _kernels(report: Report) -> Iterator[str]:
    for kernel in report.kernels[:ROWS]:
        yield from _kernel(kernel)
    if len(report.kernels) > ROWS:
        yield f"and {len(report.kernels) - ROWS} more kernels in results.json"
    yield "\n<sub>What a kernel printed, named or noted is quoted as untrusted text.</sub>"


def _kernel(kernel: KernelReport) -> Iterator[str]:
    rung = kernel.rung("profile")
    finding = rung.finding if rung else None
    if rung is None or not rung.rows:
        why = inert.prose(finding.message) if finding else "it was not climbed"
        yield f"\n* {inert.code(kernel.name)}: not profiled: {why}"
        return
    for row in rung.rows[:ROWS]:
        yield from _row(kernel, row)
    if len(rung.rows) > ROWS:
        yield f"and {len(rung.rows) - ROWS} more rows in results.json"


def _row(kernel: KernelReport, row: Row) -> Iterator[str]:
    yield f"\n**{inert.code(kernel.name)}** {inert.code(row.case)}\n"
    if row.finding is not None:
        yield f"* {inert.prose(row.finding.message)}"
    yield from (f"* {inert.prose(note)}" for note in row.notes[:NOTES])
    before = {metric.tag.removesuffix("_base"): metric for metric in row.metrics if metric.tag.endswith("_base")}
    own = [metric for metric in row.metrics if not metric.tag.endswith("_base")][:METRICS]
    if own:
        yield "\n| | base | head |\n| :-- | --: | --: |"
        yield from (f"| {inert.prose(each.name)} | {_value(before.get(each.tag))} | {_value(each)} |" for each in own)


def _value(metric: Metric | None) -> str:
    return inert.prose(units.value(metric.value, metric.unit)) if metric is not None else ""
