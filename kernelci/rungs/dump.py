"""dump: what the compiler made, for people and diffs: IR at every level, PTX, SASS, CUBIN, and CUDA C++ sources."""

import re
from pathlib import Path

from kernelci.compiling.builder import Compiled
from kernelci.model import Artifact
from kernelci.rungs import Findings, Referee, rung

FOLDER = "dumps"


@rung("dump", after=("compile",))
def dump(referee: Referee) -> Findings:
    """Files under dumps/<kernel>/<case>/<target>/."""
    artifacts: list[Artifact] = []
    for target in referee.targets:
        for build in referee.compiled(target).builds:
            folder = Path(FOLDER) / referee.kernel.name / _safe(build.kernel.case or "any") / target
            artifacts += _write(referee.out, folder, build)
    return Findings(artifacts=artifacts)


def _write(out: Path, folder: Path, build: Compiled) -> list[Artifact]:
    (out / folder).mkdir(parents=True, exist_ok=True)
    stem = _free_stem(out / folder, _safe(build.kernel.symbol)[:80])
    found = []
    for extension, content in sorted(build.files.items()):
        path = folder / f"{stem}.{_safe(extension)}"
        (out / path).write_bytes(content)
        found.append(Artifact(str(path), _safe(extension), len(content)))
    return found


def _free_stem(folder: Path, stem: str) -> str:
    """A stem that no other build of this folder has: `name`, `name.2`, …"""
    number, free = 1, stem
    while any(folder.glob(f"{free}.[a-z]*")):
        number += 1
        free = f"{stem}.{number}"
    return free


def _safe(text: str) -> str:
    """Letters, digits, dot, dash and underscore: symbols and cases come from the kernel."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).lstrip(".") or "_"
