"""A run's artifact: found by its exact name through the API, downloaded with a cap, kept as a file."""

import tempfile
import urllib.parse
from pathlib import Path

import requests
from msgspec import Struct

from kernelci import results
from kernelci.errors import ArtifactMissing, HubError, ReportError, TokenError
from kernelci.hub import REPORT, artifact_name, limits, unpack
from kernelci.hub.client import Client
from kernelci.hub.event import Run, Sha
from kernelci.model import Report

_CHUNK = 2**16
_AGENT = {"User-Agent": "kernelci"}


class Origin(Struct, frozen=True):
    """The run that left an artifact."""

    id: int
    head_sha: Sha | None = None


class Artifact(Struct, frozen=True):
    """An artifact as GitHub lists it."""

    id: int
    name: str
    size_in_bytes: int
    expired: bool
    workflow_run: Origin | None = None


def listed(client: Client, run: Run) -> dict[str, Artifact]:
    """The artifacts of this attempt by their kind. Raises ReportError where two have one name."""
    ending = f"-{run.run_attempt}"
    found: dict[str, Artifact] = {}
    for each in client.pages(f"actions/runs/{run.id}/artifacts", Artifact, key="artifacts", limit=1000):
        kind = each.name.removesuffix(ending)
        if each.name != f"{kind}{ending}" or (each.workflow_run and each.workflow_run.id != run.id):
            continue
        if kind in found:
            raise ReportError(f"two artifacts have the name {each.name}", code="artifact")
        found[kind] = each
    return found


def chosen(found: dict[str, Artifact], kind: str, run: Run, caps: limits.Caps) -> Artifact:
    """The artifact of one kind. Raises ArtifactMissing or ReportError."""
    each = found.get(kind)
    if each is None:
        raise ArtifactMissing(f"run {run.id} has no artifact {artifact_name(kind, run.run_attempt)}")
    if each.expired:
        raise ArtifactMissing(f"artifact {each.name} of run {run.id} has expired")
    if each.size_in_bytes > caps.archive_bytes:
        raise _too_large(each, each.size_in_bytes, caps)
    return each


def _too_large(each: Artifact, size: int, caps: limits.Caps) -> ReportError:
    return ReportError(f"{each.name} has {size:,} bytes, and {caps.archive_bytes:,} are allowed", code="artifact")


def report(client: Client, found: dict[str, Artifact], run: Run) -> Report:
    """The report of an attempt. Raises ArtifactMissing, ReportError."""
    each = chosen(found, REPORT, run, limits.REPORT)
    with tempfile.TemporaryDirectory(prefix="kernelci-artifact-") as folder:
        archive = Path(folder) / "report.zip"
        download(client, each, archive, limits.REPORT)
        read = results.decode(unpack.member(archive, results.FILE_NAME, limits.REPORT))
    if read.change is not None and read.change.head != run.head_sha:
        raise ReportError(f"it judges {read.change.head[:40]!a}, and the run ran on {run.head_sha}", code="artifact")
    return read


def download(client: Client, each: Artifact, into: Path, caps: limits.Caps) -> None:
    """Download an archive. The storage host that GitHub names gets no token. Raises ArtifactMissing, ReportError."""
    url = f"{client.api}/repos/{client.repository}/actions/artifacts/{each.id}/zip"
    try:
        for attempt in client.retrying():
            with attempt:
                _download_once(client, each, url, into, caps)
    except requests.RequestException as error:
        raise HubError(f"{each.name}: download failed ({type(error).__name__})", hint="run it again later") from error


def _download_once(client: Client, each: Artifact, url: str, into: Path, caps: limits.Caps) -> None:
    head = {
        "Authorization": f"Bearer {client.token}",
        "Accept": "application/vnd.github+json",
        "User-Agent": "kernelci",
    }
    timeout = client.patience.timeout_s
    with requests.get(url, headers=head, allow_redirects=False, stream=True, timeout=timeout) as answer:
        _check(answer, each)
        place = answer.headers.get("Location", "") if answer.is_redirect else ""
        if not place:
            _save(answer, each, into, caps)
            return
    if urllib.parse.urlparse(place).scheme != urllib.parse.urlparse(client.api).scheme:
        raise HubError(f"{each.name}: GitHub names a place that is not safe to download from")
    with requests.get(place, headers=_AGENT, stream=True, timeout=timeout) as answer:
        _check(answer, each)
        _save(answer, each, into, caps)


def _check(answer: requests.Response, each: Artifact) -> None:
    if answer.status_code in (404, 410):
        raise ArtifactMissing(f"artifact {each.name} is gone or has expired")
    if answer.status_code in (401, 403):
        raise TokenError(f"{each.name}: {answer.status_code}", hint="the job needs `permissions: actions: read`")
    answer.raise_for_status()


def _save(answer: requests.Response, each: Artifact, into: Path, caps: limits.Caps) -> None:
    """As it comes, without decoding: a compressed transfer could be a bomb of its own."""
    answer.raw.decode_content = False
    got = 0
    with into.open("wb") as file:
        while chunk := answer.raw.read(_CHUNK):
            got += len(chunk)
            if got > caps.archive_bytes:
                raise _too_large(each, got, caps)
            file.write(chunk)
    expected = answer.headers.get("Content-Length", "")
    if expected.isdigit() and int(expected) != got:
        raise requests.ConnectionError(f"{got} of {expected} bytes")
