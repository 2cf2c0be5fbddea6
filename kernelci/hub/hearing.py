"""Hear the second referee: the whole head, its judge included, as one run in a sandbox, in a process of its own.

Nothing of the head is read here but as data. What goes wrong in there is a sentence in the report, and no more.
"""

import subprocess
import sys
from pathlib import Path

import msgspec

from kernelci import config, second
from kernelci.catalog import Kernel
from kernelci.errors import KernelciError, RunnerBroken
from kernelci.git import Repository
from kernelci.hub import judge
from kernelci.hub.request import Request
from kernelci.model import KernelReport, Second
from kernelci.second import Confined

# Beyond the run's own deadline: what starting and ending it may take.
GRACE_S = 300.0
NOTHING = "the change brings no judge that a kernel is judged by: no reference, rung or configuration of its own"


def heard(repository: Repository, judged: judge.Judged, request: Request, folder: Path) -> Second:
    """What the head's own judge says of the kernels that it is concerned with; never fails. `folder` is empty."""
    kernels = [kernel for kernel in judged.concerned if not request.only or kernel.name in request.only]
    if not kernels:
        return Second(by=request.by, why=NOTHING)
    asked = tuple(_asked(kernel, judged.root) for kernel in kernels)
    try:
        found, said = _run(repository, judged, request, folder, [kernel.name for kernel in kernels])
    except KernelciError as error:
        found, said = Confined(why=error.message), b""
    return second.admitted(said, asked, found, request.by)


def _asked(kernel: Kernel, root: Path) -> KernelReport:
    path = str(kernel.path.relative_to(root))
    return KernelReport(kernel.name, kernel.reference, kernel.backend, path, kernel.sha256(), ())


def _run(
    repository: Repository, judged: judge.Judged, request: Request, folder: Path, names: list[str]
) -> tuple[Confined, bytes]:
    """What the sandbox's own side says, and the bytes that came out of it. Raises KernelciError."""
    project = judge.write_head(repository, judged.change.head, folder / "head")
    shown = ["--shown", str(folder / "head")]
    # A seed of its own: what the first referee draws with is not for it to know.
    asked: list[str] = [request.mode]
    if request.mode == "run":
        repository.write(repository.tree(judged.change.base), folder / "base")
        shown += ["--shown", str(folder / "base")]
        asked += ["--base-folder", str(folder / "base" / repository.prefix)]
    _open_to_all(folder)
    into = folder / "out"
    into.mkdir()
    limit_s = config.load(judged.root).second_timeout_s
    command = [sys.executable, "-P", "-s", "-m", "kernelci.confinement", "--project", str(project), *shown]
    command += ["--into", str(into), "--seconds", str(limit_s), "--", *asked, "--", *names]
    try:
        done = subprocess.run(command, cwd=into, stdout=2, check=False, timeout=limit_s + GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise RunnerBroken("the sandbox's own side did not end") from error
    if done.returncode != 0:
        raise RunnerBroken(f"the sandbox's own side ended with exit code {done.returncode}")
    found = msgspec.json.decode((into / second.FACTS).read_bytes(), type=Confined)
    return found, (into / second.SAID).read_bytes()


def _open_to_all(folder: Path) -> None:
    """Let the sandbox's unprivileged user read what was written here, whatever this process's umask."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
