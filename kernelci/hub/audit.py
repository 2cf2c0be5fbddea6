"""`kernelci audit`: a repository's workflows against the rules that keep untrusted kernels away from tokens."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kernelci.hub import workflow
from kernelci.hub.workflow import Step, Workflow

Level = Literal["error", "warning"]
# Triggers that run with the base's token and secrets although a stranger set them off.
_PRIVILEGED = frozenset({"pull_request_target", "issue_comment", "workflow_run"})
_OF_A_CHANGE = re.compile(
    r"github\.event\.(pull_request\.(head|merge)|workflow_run\.head|issue\.number|number)|github\.head_ref"
    r"|refs/pull/|steps\.|needs\.|env\.|inputs\.(ref|head|sha)",
)
_FETCHES = re.compile(r"gh\s+pr\s+checkout|gh\s+repo\s+clone|git\s+(fetch|pull|clone)\b.*(pull/|head_ref|HEAD_REF|\$)")
_STRANGERS = re.compile(
    r"\$\{\{[^}]*(github\.(head_ref|event\.(issue|comment|review|discussion|pull_request|workflow_run|pages|commits"
    r"|head_commit|label|inputs|client_payload)\b)|inputs\.|matrix\.|steps\.[^}]*outputs|needs\.[^}]*outputs)"
)
_PINNED = re.compile(r"@[0-9a-f]{40}$|@sha256:[0-9a-f]{64}$")
_SECRET = re.compile(r"\$\{\{[^}]*\bsecrets\b(?!\.GITHUB_TOKEN\b)")


class Fault(Struct, frozen=True):
    """One rule that a file breaks."""

    level: Level
    rule: str
    path: str
    line: int
    message: str


Rule = Callable[[Workflow], Iterator[Fault]]


def examine(root: Path, zizmor: str | None = None) -> list[Fault]:
    """Every finding, errors first; zizmor's too where it is installed. Raises ConfigError for what is no YAML."""
    found = [each for file in workflow.read(root) for rule in RULES for each in rule(file)]
    command = zizmor if zizmor is not None else _zizmor()
    if command and workflow.paths(root):  # it has no answer where there is nothing to look at
        found += from_zizmor(root, command)
    return sorted(set(found), key=lambda each: (each.level != "error", each.path, each.line, each.rule))


def _privileged_checkout(file: Workflow) -> Iterator[Fault]:
    for trigger in sorted(file.triggers & _PRIVILEGED):
        for _, step in file.steps:
            if _checks_out(step):
                said = (
                    f"runs on {trigger} with a token, and checks out what a stranger wrote: anybody can run code there"
                )
                yield Fault("error", f"{trigger.replace('_', '-')}-checkout", file.path, step.line, said)


def _checks_out(step: Step) -> bool:
    if step.uses.startswith("actions/checkout@"):
        return bool(_OF_A_CHANGE.search(f"{step.given.get('ref', '')} {step.given.get('repository', '')}"))
    return bool(_FETCHES.search(step.run))


def _unsafe_checkout(file: Workflow) -> Iterator[Fault]:
    for _, step in file.steps:
        if str(step.given.get("allow-unsafe-pr-checkout", "")).lower() not in ("", "false"):
            said = "allow-unsafe-pr-checkout switches off what keeps a pull request's code from a privileged job"
            yield Fault("error", "allow-unsafe-pr-checkout", file.path, step.line, said)


def _unpinned(file: Workflow) -> Iterator[Fault]:
    places = [*((step.line, step.uses) for _, step in file.steps), *((job.line, job.uses) for job in file.jobs)]
    for line, uses in places:
        if uses and not uses.startswith(("./", "$/")) and not _PINNED.search(uses):
            said = f"{uses} is not pinned by a full commit: whoever moves the tag runs code here"
            yield Fault("error", "unpinned-action", file.path, line, said)


def _writes(file: Workflow) -> Iterator[Fault]:
    """Code of a pull request runs on `pull_request`; a token that writes does not belong beside it."""
    if "pull_request" not in file.triggers:
        return
    for job in file.jobs:
        granted = job.permissions if job.permissions is not None else file.permissions
        if granted is None:
            said = "says nothing of permissions, so the token can do what the repository's default allows"
            yield Fault("warning", "permissions-missing", file.path, job.line, f"job {job.name} {said}")
        elif _can_write(granted):
            said = "has a token that writes, in a workflow that runs what a pull request brings"
            yield Fault("error", "write-token-beside-untrusted-code", file.path, job.line, f"job {job.name} {said}")


def _can_write(granted: Any) -> bool:
    if isinstance(granted, dict):
        return any(str(value) == "write" for value in granted.values())
    return bool(granted == "write-all")


def _secrets(file: Workflow) -> Iterator[Fault]:
    if "pull_request" not in file.triggers:
        return
    said = "hands a secret to a workflow that runs what a pull request brings"
    for number, line in enumerate(file.text.splitlines(), start=1):
        if _SECRET.search(line.partition(" #")[0]):
            yield Fault("error", "secret-beside-untrusted-code", file.path, number, said)
    for job in file.jobs:
        if job.secrets == "inherit":
            yield Fault("error", "secret-beside-untrusted-code", file.path, job.line, f"job {job.name} {said}")


def _persistent(file: Workflow) -> Iterator[Fault]:
    if not file.triggers & {"pull_request", "pull_request_target"}:
        return
    for job in file.jobs:
        if any("self-hosted" in label for label in job.runs_on) and not any("ephemeral" in x for x in job.runs_on):
            said = "is on a self-hosted runner not labelled `ephemeral`: the next job finds what a pull request leaves"
            yield Fault("warning", "persistent-runner", file.path, job.line, f"job {job.name} {said}")


def _injection(file: Workflow) -> Iterator[Fault]:
    for _, step in file.steps:
        for text in (step.run, str(step.given.get("script", "")) if "github-script" in step.uses else ""):
            if match := _STRANGERS.search(text):
                said = f"{match.group()[:80]}… stands in a script, where its text is code: pass it through `env`"
                yield Fault("error", "script-injection", file.path, step.line, said)


def _credentials(file: Workflow) -> Iterator[Fault]:
    for _, step in file.steps:
        kept = str(step.given.get("persist-credentials", "true")).lower() != "false"
        if step.uses.startswith("actions/checkout@") and kept and file.triggers & {"pull_request", *_PRIVILEGED}:
            said = "leaves the token in .git/config, where later steps can read it: persist-credentials: false"
            yield Fault("warning", "persisted-credentials", file.path, step.line, said)


RULES: tuple[Rule, ...] = (
    _privileged_checkout, _unsafe_checkout, _unpinned, _writes, _secrets, _persistent, _injection, _credentials,
)  # fmt: skip


def _zizmor() -> str:
    beside = Path(sys.executable).parent / "zizmor"
    return str(beside) if beside.is_file() else shutil.which("zizmor") or ""


def from_zizmor(root: Path, command: str) -> list[Fault]:
    """zizmor's findings of medium severity and above. One that can't be had is a finding itself."""
    asked = [
        command,
        "--offline",
        "--quiet",
        "--format",
        "json-v1",
        "--no-exit-codes",
        "--min-severity",
        "medium",
        str(root),
    ]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)
        every = json.loads(done.stdout or "[]") if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        every = None
    if every is None:
        return [Fault("warning", "zizmor", ".github", 0, "zizmor is installed, and did not answer")]
    return [_translated(each, root) for each in every if not each.get("ignored")]


def _translated(each: dict[str, Any], root: Path) -> Fault:
    places = each["locations"]
    primary = next((place for place in places if place["symbolic"]["kind"] == "Primary"), places[0])
    path = str(next(iter(primary["symbolic"]["key"].values()))["verbatim_path"])
    level: Level = "error" if each["determinations"]["severity"] == "High" else "warning"
    line = int(primary["concrete"]["location"]["start_point"]["row"]) + 1
    return Fault(level, f"zizmor/{each['ident']}", path.removeprefix(f"{root}/"), line, str(each["desc"]))


def table(found: list[Fault]) -> str:
    """The findings as lines, as compilers write them."""
    if not found:
        return "no findings"
    lines = [f"{each.path}:{each.line}: {each.level}: {each.message} [{each.rule}]" for each in found]
    errors = sum(each.level == "error" for each in found)
    return "\n".join([*lines, f"{errors} errors, {len(found) - errors} warnings"])


def as_json(found: list[Fault]) -> str:
    """The findings as a JSON array."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode()


def exit_code(found: list[Fault]) -> int:
    """1 where a rule is broken; warnings alone pass."""
    return 1 if any(each.level == "error" for each in found) else 0
