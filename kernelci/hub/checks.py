"""The check run with its annotations, and the commit status: each is found by its key, so none is posted twice."""

from typing import Any

from msgspec import Struct

from kernelci import digest, inert
from kernelci.hub import limits
from kernelci.hub.client import Client
from kernelci.hub.conclude import Conclusion, State
from kernelci.hub.event import Run
from kernelci.model import Report
from kernelci.reasons import REASONS, Outcome

NAME = "kernelci"
ACCEPTED = "Accepted by"


class Output(Struct, frozen=True):
    """What a check run shows."""

    title: str | None = None
    summary: str | None = None
    annotations_count: int = 0


class Check(Struct, frozen=True):
    """A check run."""

    id: int
    status: str
    conclusion: str | None = None
    external_id: str | None = None
    output: Output = Output()


class Status(Struct, frozen=True):
    """A commit status."""

    context: str
    state: str
    description: str | None = None
    target_url: str | None = None


def begin(client: Client, run: Run) -> Check:
    """The check run of this attempt, in progress; the one that exists already where there is one."""

    def posted() -> Check | None:
        found = client.pages(
            f"commits/{run.head_sha}/check-runs", Check, key="check_runs", check_name=NAME, filter="all", limit=1000
        )
        return next((each for each in found if each.external_id == key), None)

    key = f"{run.id}.{run.run_attempt}"
    body = {
        "name": NAME,
        "head_sha": run.head_sha,
        "status": "in_progress",
        "external_id": key,
        "details_url": run.html_url,
    }
    return posted() or client.post("check-runs", body, Check, posted)


def finish(client: Client, check: Check, found: Conclusion, page: str, annotations: list[dict[str, Any]]) -> None:
    """Complete the check. An annotation is only ever added, so they go with the first completion alone."""
    title, summary = inert.line(found.title, 250), visible(page)
    shown = (check.conclusion, check.output.title, (check.output.summary or "").rstrip())
    if shown == (found.word, title, summary.rstrip()):
        return
    output: dict[str, Any] = {"title": title, "summary": summary}
    if annotations and not check.output.annotations_count:
        output["annotations"] = annotations[: limits.ANNOTATIONS_PER_CALL]
    client.patch(f"check-runs/{check.id}", {"status": "completed", "conclusion": found.word, "output": output}, Check)


def is_accepted(check: Check) -> bool:
    """Whether somebody has accepted what this attempt found: publishing it again does not take that back."""
    return check.conclusion == "success" and (check.output.title or "").startswith(ACCEPTED)


def visible(page: str) -> str:
    """A comment's page without what only programs read in it, within a check's limit."""
    text = "\n".join(line for line in page.split("\n") if not line.startswith("<!-- kernelci:"))
    assert len(text) <= limits.CHECK_CHARACTERS  # the comment's limit less the marker is lower
    return text.strip("\n") + "\n"


def waiting(client: Client, check: Check, title: str) -> None:
    """The check goes on: the run is being repeated."""
    output = {"title": inert.line(title, 250), "summary": inert.prose(title)}
    client.patch(f"check-runs/{check.id}", {"status": "in_progress", "output": output}, Check)


def status(client: Client, sha: str, state: State, description: str, url: str) -> None:
    """Set the commit status, unless it says so already."""
    wanted = Status(NAME, state, limits.described(inert.line(description)), url)

    def posted() -> Status | None:
        found = client.pages(f"commits/{sha}/statuses", Status, limit=300)
        newest = next((each for each in found if each.context == NAME), None)
        return newest if newest == wanted else None

    body = {"context": NAME, "state": state, "description": wanted.description, "target_url": url}
    if posted() is None:
        client.post(f"statuses/{sha}", body, Status, posted)


def annotations(report: Report, files: frozenset[str], prefix: str = "") -> list[dict[str, Any]]:
    """The gravest failures at their lines, one for each kernel, in files that the change touches."""
    found: dict[str, dict[str, Any]] = {}
    for stop in digest.stops(report):
        at = next((path for path in (stop.finding.file, stop.kernel.path) if f"{prefix}{path}" in files), "")
        if at and stop.kernel.name not in found:
            line = max(stop.finding.line, 1) if at == stop.finding.file else 1
            title = f"{stop.kernel.name} at {stop.rung.rung}: {REASONS[stop.finding.reason].title}"
            found[stop.kernel.name] = {
                "path": f"{prefix}{at}",
                "start_line": min(line, 10**6),
                "end_line": min(line, 10**6),
                "annotation_level": "warning" if stop.rung.outcome is Outcome.BROKEN else "failure",
                "title": inert.line(title, 200),
                "message": inert.head(stop.finding.message, 12)[: limits.ANNOTATION_CHARACTERS] or "no message",
            }
    return list(found.values())[: limits.ANNOTATIONS]
