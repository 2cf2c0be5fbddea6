"""Upload or download artifacts by the protocol of GitHub's artifact service, with the standard library alone."""

import base64
import fnmatch
import io
import json
import os
import sys
import urllib.request
import zipfile
from pathlib import Path
from typing import Any


def call(method: str, **fields: Any) -> Any:
    """One call of the service, on behalf of this job."""
    token = os.environ["ACTIONS_RUNTIME_TOKEN"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    scope = next(part for part in claims["scp"].split() if part.startswith("Actions.Results:"))
    _, run, job = scope.split(":")
    url = (
        f"{os.environ['ACTIONS_RESULTS_URL'].rstrip('/')}/twirp/github.actions.results.api.v1.ArtifactService/{method}"
    )
    body = json.dumps({"workflow_run_backend_id": run, "workflow_job_run_backend_id": job, **fields}).encode()
    request = urllib.request.Request(
        url, body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def upload(name: str, folder: Path) -> None:
    """All files of a folder as one archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    url = call("CreateArtifact", name=name, version=4)["signedUploadUrl"]
    block = base64.b64encode(b"0").decode()
    for comp, body in (
        (f"block&blockid={block}", buffer.getvalue()),
        ("blocklist", f"<BlockList><Latest>{block}</Latest></BlockList>".encode()),
    ):
        request = urllib.request.Request(f"{url}&comp={comp}", body, {"Content-Type": "text/plain"}, method="PUT")
        urllib.request.urlopen(request, timeout=60).close()
    assert call("FinalizeArtifact", name=name, size=str(len(buffer.getvalue())))["ok"]
    print(f"uploaded {name}: {len(buffer.getvalue())} bytes")


def download(pattern: str, folder: Path) -> None:
    """Every artifact that fits, each into a folder of its own name."""
    for each in call("ListArtifacts").get("artifacts", []):
        if fnmatch.fnmatchcase(each["name"], pattern):
            url = call("GetSignedArtifactURL", name=each["name"])["signedUrl"]
            with urllib.request.urlopen(url, timeout=60) as answer:
                zipfile.ZipFile(io.BytesIO(answer.read())).extractall(folder / each["name"])
            print(f"downloaded {each['name']}")


if __name__ == "__main__":
    {"upload": upload, "download": download}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
