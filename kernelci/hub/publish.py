"""`kernelci publish`: from a run's artifact to one comment, one check and one status on the pull request that ran it.

It runs beside a write token, so it takes nothing from the change but the artifact, and that only after strict checks.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kernelci import inert
from kernelci.errors import ArtifactMissing, EventError, KernelciError, ReportError, Superseded, TokenError
from kernelci.hub import REPORT, allowance, artifact, base, checks, event, pull, sticky
from kernelci.hub.client import Client, Patience, connect
from kernelci.hub.conclude import Conclusion, Touched, conclude, meaning, touched, without_report
from kernelci.model import Report
from kernelci.publication import Link, Publication
from kernelci.reporters import Context, markdown

_BEGUN = ("requested", "in_progress")


class Posted(Struct, frozen=True):
    """What was posted."""

    pull: int
    conclusion: str
    title: str
    comment: str = ""

    @property
    def text(self) -> str:
        """In a line for the job's log."""
        return f"pull request {self.pull}: {self.conclusion}: {self.title} {self.comment}".rstrip()


class Scene(Struct, frozen=True):
    """Where all of it happens."""

    client: Client
    event: event.RunEvent
    pull: pull.Pull
    root: Path
    prefix: str
    login: str


def publish(
    root: Path,
    prefix: str = "",
    login: str = "",
    environ: Mapping[str, str] | None = None,
    patience: Patience | None = None,
) -> Posted:
    """Publish the run of the event in GITHUB_EVENT_PATH. Raises KernelciError; what is superseded posts nothing."""
    values = os.environ if environ is None else environ
    found = event.of_run(event.load(values))
    client = connect(found.repository.full_name, values, patience)
    scene = Scene(client, found, pull.resolve(client, found), root, prefix, login)
    if found.action in _BEGUN:
        return _begin(scene)
    if found.action != "completed":
        raise EventError(f"nothing is done on workflow_run.{found.action[:40]}")
    return _complete(scene)


def _begin(scene: Scene) -> Posted:
    run = scene.event.workflow_run
    checks.begin(scene.client, run)
    checks.status(scene.client, run.head_sha, "pending", "Kernels are being judged.", run.html_url)
    return Posted(scene.pull.number, "in_progress", "the run has begun")


def _complete(scene: Scene) -> Posted:
    run = scene.event.workflow_run
    check = checks.begin(scene.client, run)
    try:
        listed = artifact.listed(scene.client, run)
        report = artifact.report(scene.client, listed, run)
    except (ArtifactMissing, ReportError) as error:
        _without(scene, check, error)
        raise
    files = pull.files(scene.client, scene.pull)
    options = base.options(scene.client, scene.pull.base.sha, scene.prefix)
    change = touched(files, options, scene.prefix)
    report = allowance.kept(scene.client, scene.pull.number, run, options, report)
    found = conclude(report, change, run.run_attempt, scene.prefix)
    if not pull.is_current(scene.client, scene.pull):
        raise Superseded(f"pull request {scene.pull.number} moved on while its report was read")
    if found.retry and _repeated(scene):
        return _wait(scene, check, found)
    return _post(scene, check, report, change, found, listed, files.paths)


def _post(
    scene: Scene,
    check: checks.Check,
    report: Report,
    change: Touched,
    found: Conclusion,
    listed: dict[str, artifact.Artifact],
    paths: frozenset[str],
) -> Posted:
    where = _publication(scene, change, found, listed)
    page = markdown.render(report, Context(root=scene.root, publication=where))
    comment = sticky.put(scene.client, scene.login or sticky.identity(scene.client), page)
    if not checks.is_accepted(check):
        checks.finish(scene.client, check, found, page, checks.annotations(report, paths, scene.prefix))
        checks.status(scene.client, scene.pull.head.sha, found.state, found.title, comment.html_url)
    return Posted(scene.pull.number, found.word, found.title, comment.html_url)


def _without(scene: Scene, check: checks.Check, error: KernelciError) -> None:
    """No report to show: the check and the status say why, and that they are not green. No comment."""
    found = without_report(error.message)
    page = f"{markdown.CONCLUSIONS[found.word]} {inert.prose(found.title)}\n\n**Next:** {found.who}\n"
    checks.finish(scene.client, check, found, page, [])
    run = scene.event.workflow_run
    checks.status(scene.client, run.head_sha, found.state, found.title, run.html_url)


def _repeated(scene: Scene) -> bool:
    """Ask for the one repetition; False where the token may not."""
    try:
        scene.client.post(f"actions/runs/{scene.event.workflow_run.id}/rerun-failed-jobs", {}, dict)
    except TokenError:
        return False
    return True


def _wait(scene: Scene, check: checks.Check, found: Conclusion) -> Posted:
    run = scene.event.workflow_run
    title = f"BROKEN, and repeated once: {found.title}"
    checks.waiting(scene.client, check, title)
    checks.status(scene.client, run.head_sha, "pending", title, run.html_url)
    return Posted(scene.pull.number, "in_progress", title)


def _publication(scene: Scene, change: Touched, found: Conclusion, listed: dict[str, artifact.Artifact]) -> Publication:
    run, head = scene.event.workflow_run, scene.pull.head
    repository = head.repo.full_name if head.repo else "a deleted fork"
    links = [
        Link(each.name, f"{run.html_url}/artifacts/{each.id}", each.size_in_bytes)
        for kind, each in sorted(listed.items(), key=lambda item: item[0] != REPORT)
        if not each.expired
    ]
    return Publication(
        pull=scene.pull.number,
        head_sha=head.sha,
        base_sha=scene.pull.base.sha,
        head=f"{repository}:{head.ref}",
        is_fork=scene.pull.is_fork,
        run=run.id,
        attempt=run.run_attempt,
        run_url=run.html_url,
        links=tuple(links),
        **meaning(found, change),
    )
