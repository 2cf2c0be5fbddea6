"""One night: the whole ladder with every kernel of trusted code, and its records on the history's branch."""

import datetime
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kernelci import history, results
from kernelci.errors import ConfigError, HubError, ReportError, RunnerBroken
from kernelci.git import Repository
from kernelci.nightly import BRANCH, detect
from kernelci.nightly.bisect import culprits
from kernelci.nightly.branch import Branch
from kernelci.nightly.remeasure import events as decided
from kernelci.nightly.remeasure import measurer
from kernelci.nightly.series import events, load

PAIRS_S = 2 * 3600.0  # a night begins no measurement of pairs after so long
PENDING = "history"  # below the report's folder: what could not be pushed


class Night(Struct, frozen=True):
    """Where a night's records go, and what they say of where they come from."""

    branch: Branch | None
    """None: they stay in the report's folder."""
    commit: str = ""
    run: str = ""


def of(root: Path, environ: Mapping[str, str], url: str = "", name: str = BRANCH, push: bool = True) -> Night:
    """The night of a checkout at `root`; the branch lies at `url`, else where the checkout comes from."""
    repository = Repository(root)
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or ""
    branch = Branch(url or _origin(root), name, token) if push else None
    return Night(branch, repository.commit("HEAD"), run_url(environ))


def run_url(environ: Mapping[str, str]) -> str:
    """The page of the workflow's run; empty outside of one."""
    parts = [environ.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")]
    return f"{parts[0]}/{parts[1]}/actions/runs/{parts[2]}" if all(parts) else ""


def climb(root: Path, out: Path, kernels: Iterable[str] = (), options: Sequence[str] = ()) -> int:
    """The whole ladder in a process of its own; the exit code. Raises RunnerBroken where no report is left."""
    out.mkdir(parents=True, exist_ok=True)
    (out / results.FILE_NAME).unlink(missing_ok=True)
    command = [sys.executable, "-P", "-s", "-m", "kernelci", "--root", str(root.resolve()), "run", "--tier", "full"]
    done = subprocess.run([*command, "--out", str(out.resolve()), *options, "--", *kernels], stdout=2, check=False)
    if not (out / results.FILE_NAME).is_file():
        kind = ConfigError if done.returncode == ConfigError.exit_code else RunnerBroken
        raise kind(f"the ladder left no report (exit code {done.returncode})", hint="its own message stands above")
    return done.returncode


def append(folders: Iterable[Path], night: Night) -> tuple[str, ...]:
    """Put the reports' records on the branch, and what was measured again beside them, in one push; their paths there.

    Each report's file is also left below its folder. Raises ReportError before anything is pushed, HubError.
    """
    files: dict[str, bytes] = {}
    for folder in folders:
        place = (folder if folder.is_dir() else folder.parent) / PENDING
        path, data = history.night_file(measures(folder, night))
        _put(place, path, data)
        files[path] = data
        files |= dict([history.event_file(found)]) if (found := events(place)) else {}
    if night.branch is not None:
        _push(night.branch, files)
    return tuple(files)


def remeasure(root: Path, before: Path, out: Path, night: Night, budget: int) -> tuple[history.Event, ...]:
    """Decide what seems to have changed tonight, given the history so far, on this machine's own GPU; and look for the
    commits that did it.

    The answers are left below the report's folder. Raises ReportError.
    """
    found = measures(out, night)
    path, data = history.night_file(found)
    _put(before, path, data)
    every = [each for each in load(before) if each.gpu == found[0].gpu]
    suspects = detect.tonight(every, events(before), budget).suspects
    measure, until = measurer(root), time.monotonic() + PAIRS_S
    answers = decided(suspects, measure, until)
    answers += culprits(root, answers, measure, until=until)
    if answers:
        _put(out / PENDING, *history.event_file(answers))
    return answers


def _put(folder: Path, path: str, data: bytes) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)


def measures(folder: Path, night: Night) -> tuple[history.Measure, ...]:
    """A report's records. Raises ReportError for a report that is of a pull request."""
    report = results.read(folder)
    if report.change is not None:
        raise ReportError(f"{folder} is the report of a change: the history takes trusted code alone")
    return history.of_report(report, _date(report.started_at), night.commit, night.run)


def _push(branch: Branch, files: Mapping[str, bytes]) -> None:
    try:
        branch.add(files, f"night: {', '.join(sorted(Path(path).name for path in files))}"[:200])
    except HubError as error:
        hint = f"the records are kept below {PENDING}/ of the report: `kernelci history append` sends them again"
        raise HubError(error.message, hint=hint) from error


def _date(started: str) -> datetime.date:
    """The night's date: the day on which it began, by UTC."""
    try:
        return datetime.datetime.fromisoformat(started).astimezone(datetime.UTC).date()
    except ValueError as error:
        raise ReportError(f"the report began at {started[:40]!a}, which is no time") from error


def _origin(root: Path) -> str:
    """Where the checkout comes from. Raises ConfigError."""
    command = ["git", "-C", str(root), "config", "--get", "remote.origin.url"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        raise ConfigError("this checkout has no remote `origin`", hint="name the history's repository with --history")
    return done.stdout.strip()
