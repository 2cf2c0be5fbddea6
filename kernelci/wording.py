"""How a stop is worded for a kernel's report: paths of the project, and the command that repeats it."""

import re
from collections.abc import Iterable
from pathlib import Path

from kernelci.catalog import Kernel
from kernelci.errors import Stop
from kernelci.model import Finding
from kernelci.reference import Case
from kernelci.units import listed

SHOWN_CASES = 8
# Where a candidate keeps the kernel's files (kernelci.workbench.private.written).
_CANDIDATE_FOLDER = re.compile(r"[^\s\"']*/kernelci-kernel-\d+/[^/\s\"']+/")


def finding(stop: Stop, kernel: Kernel, root: Path, reproduce: str) -> Finding:
    """A stop as a record, of bounded size."""
    return Finding(
        stop.reason,
        _in_project(stop.message, kernel)[:10_000],
        file=relative(stop.file, kernel, root),
        line=stop.line,
        log=_in_project(stop.log, kernel)[-8000:],
        reproduce=reproduce,
    )


def command(kernel: str, rung: str, case: str, where: str) -> str:
    """What to type to see it again; `where` names draw and seed."""
    options = (f"--rungs {rung}" if rung else "", f"--case {case}" if case else "", where)
    return " ".join(("kernelci run", kernel, *filter(None, options)))


def _in_project(text: str, kernel: Kernel) -> str:
    """Text of a candidate, with its own paths of the kernel's files turned into the project's."""
    return _CANDIDATE_FOLDER.sub(lambda _: f"{kernel.path.parent}/", text)


def relative(file: str, kernel: Kernel, root: Path) -> str:
    """A file's path within the project, or its end if it lies elsewhere."""
    file = _in_project(file, kernel)
    try:
        return str(Path(file).resolve().relative_to(root.resolve())) if file else ""
    except ValueError:
        return file[-300:]


def no_case(wanted: str, cases: Iterable[Case], interpreted: bool) -> str:
    """Why there is no case to execute on a device, with the names of those that there are."""
    every = tuple(cases)
    here = [case.id for case in every if case.kind == "check" or not interpreted]
    names = listed(here, SHOWN_CASES)
    if wanted and all(case.id != wanted for case in every):
        return f"no case is called {wanted!r}; there are {names or 'none for this device'}"
    which = f"{wanted} is a bench case" if wanted else "there are only bench cases"
    return f"{which}, for a GPU; {f'here run {names}' if names else 'nothing else is there'}"
