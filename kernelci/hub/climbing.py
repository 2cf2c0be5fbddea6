"""Climb with a change's kernels, in a process of its own: what an action, a rehearsal and `kernelci judge` share.

The wings know no floor above the papers, so the ladder is reached as a user reaches it, by its command line.
"""

import datetime
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

import kernelci
from kernelci import results
from kernelci.catalog import Kernel
from kernelci.errors import ConfigError, RunnerBroken
from kernelci.git import Repository
from kernelci.hub import hearing, judge
from kernelci.hub.request import Request
from kernelci.model import SCHEMA_VERSION, Environment, Finding, KernelReport, Report, RungResult
from kernelci.reasons import Outcome

WHY_UNJUDGED = "its reference {!r} exists only in this change; an owner decides on references"
NOTHING = "this change touches no kernel: nothing was judged"


def climb_change(request: Request) -> Report:
    """Judge head's kernels with base's judge; the report lies in `out` too. Raises KernelciError."""
    with tempfile.TemporaryDirectory(prefix="kernelci-judge-", ignore_cleanup_errors=True) as folder:
        repository = Repository(request.project)
        judged = judge.assemble(repository, request.base, request.head, Path(folder) / "tree")
        wanted = _wanted(judged, request.only)
        if any(name in wanted for name in judged.kernels):
            base = _base(repository, judged, Path(folder) / "base") if request.mode == "run" else None
            climb(judged.root, request, [name for name in judged.kernels if name in wanted], base)
            report = results.read(request.out)
        else:
            report = _empty(request.seed)
        report = completed(report, judged, wanted)
        if request.second and judged.concerned:
            heard = hearing.heard(repository, judged, request, Path(folder) / "second")
            report = msgspec.structs.replace(report, second=heard)
    request.out.mkdir(parents=True, exist_ok=True)
    results.write(report, request.out)
    return report


def hear_change(request: Request) -> Report:
    """The second referee alone, on a machine of its own: a report without kernels, to be merged with the first's."""
    with tempfile.TemporaryDirectory(prefix="kernelci-judge-", ignore_cleanup_errors=True) as folder:
        repository = Repository(request.project)
        judged = judge.assemble(repository, request.base, request.head, Path(folder) / "tree")
        heard = hearing.heard(repository, judged, request, Path(folder) / "second")
    report = msgspec.structs.replace(_empty(request.seed), change=judged.change, second=heard)
    request.out.mkdir(parents=True, exist_ok=True)
    results.write(report, request.out)
    return report


def _base(repository: Repository, judged: judge.Judged, into: Path) -> Path:
    """The project as the base has it: times are compared with those of its kernels."""
    repository.write(repository.tree(judged.change.base), into)
    return into / repository.prefix


def _wanted(judged: judge.Judged, only: tuple[str, ...]) -> set[str]:
    every = {*judged.kernels, *(kernel.name for kernel in judged.unjudged)}
    unknown = set(only) - every
    if unknown:
        raise ConfigError(f"the change does not touch {', '.join(sorted(unknown))}", code="no-kernels")
    return set(only) or every


def climb(root: Path, request: Request, names: Iterable[str], base: Path | None = None) -> int:
    """Climb with kernels of the tree at `root`, against those of the folder `base`; the exit code.

    Raises RunnerBroken where no report is left.
    """
    request.out.mkdir(parents=True, exist_ok=True)
    (request.out / results.FILE_NAME).unlink(missing_ok=True)
    command = arguments(root, request, names, base)
    # The ladder's table goes to standard error: standard output is for what our caller has to say.
    done = subprocess.run(command, cwd=request.out, stdout=2, check=False)
    if not (request.out / results.FILE_NAME).is_file():
        kind = ConfigError if done.returncode == ConfigError.exit_code else RunnerBroken
        raise kind(f"the ladder left no report (exit code {done.returncode})", hint="its own message stands above")
    return done.returncode


def arguments(root: Path, request: Request, names: Iterable[str], base: Path | None) -> list[str]:
    """The command that climbs."""
    options = ["--seed", request.seed] if request.seed and request.mode == "run" else []
    options += ["--tier", request.tier] if request.tier != "pr" else []
    options += ["--base-folder", str(base)] if base is not None else []
    # -P and a folder of ours: nothing that lies in the tree, or in the caller's folder, can shadow a module.
    command = [sys.executable, "-P", "-s", "-m", "kernelci", "--root", str(root.resolve()), request.mode]
    return [*command, "--out", str(request.out.resolve()), *options, "--", *names]


def completed(report: Report, judged: judge.Judged, wanted: set[str]) -> Report:
    """The report with what only the comparison of the two commits can tell."""
    unjudged = tuple(_unjudged(kernel, judged.root) for kernel in judged.unjudged if kernel.name in wanted)
    nothing = () if report.kernels or unjudged or judged.change.removed else (NOTHING,)
    return msgspec.structs.replace(
        report,
        kernels=(*report.kernels, *unjudged),
        notes=(*report.notes, *judged.notes, *nothing),
        change=judged.change,
    )


def _unjudged(kernel: Kernel, root: Path) -> KernelReport:
    finding = Finding("reference-only-in-head", WHY_UNJUDGED.format(kernel.reference))
    rung = RungResult("precheck", Outcome.SKIPPED, finding=finding)
    path = str(kernel.path.relative_to(root))
    return KernelReport(kernel.name, kernel.reference, kernel.backend, path, kernel.sha256(), (rung,))


def _empty(seed: str) -> Report:
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    where = Environment(f"{platform.system()} {platform.machine()}", platform.python_version())
    return Report(SCHEMA_VERSION, kernelci.__version__, started, 0.0, where, (), seed)
