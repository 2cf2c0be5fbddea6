"""Nsight Compute around a candidate of its own: one warm call, then one that it looks at; and its report read back.

The kernel shares its process with the tool, so a report is evidence and no proof; it is read by NVIDIA's own program,
which therefore runs in a sandbox too.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from kernelci.errors import RunnerBroken, Stop
from kernelci.reference import Case, Reference
from kernelci.workbench import instruments, ncu_module, ncu_report, sandbox, trial
from kernelci.workbench.drawn import VARIED, Drawn, draw_inputs
from kernelci.workbench.ncu_report import Launch
from kernelci.workbench.oracle import Truth
from kernelci.workbench.process import sandboxed
from kernelci.workbench.session import Session
from kernelci.workbench.single import REPORT, REPORT_BYTES, Single

REPORT_NAME, LOG_NAME = "kernel.ncu-rep", "log"
LAUNCHES = 16  # of the call that are looked at
IMPORT_S = 60.0
Opened = tuple[Session, Single]
find = instruments.nsight_compute_inside


class Profile(Struct, frozen=True):
    """One call's launches, and the report's file as the tool wrote it."""

    launches: tuple[Launch, ...]
    report: bytes


def command(binary: Path, folder: str) -> list[str]:
    """The tool's part of the command line. The call itself says when the tool is to begin; clocks are left alone."""
    return [
        *(str(binary), "--profile-from-start", "off", "--clock-control", "none", "--set", "full"),
        *("--target-processes", "application-only", "--launch-count", str(LAUNCHES), "--force-overwrite"),
        *("--export", f"{folder}/{REPORT_NAME}", "--log-file", f"{folder}/{LOG_NAME}"),
    ]


def require() -> Path:
    """The program. Raises Stop("no-profiler")."""
    found = find()
    if found is None:
        raise Stop("no-profiler", "ncu is neither on PATH nor in a CUDA toolkit here")
    return found


def drawn(reference: Reference, case: Case, seed: str, device: str) -> Drawn:
    """A case's inputs without what is true of them, which takes longer than the profile."""
    inputs = draw_inputs(reference, case, VARIED, seed, device)
    return Drawn(case, inputs, reference.outputs(case, inputs), Truth({}, {}), {}, reference.mutates)


def profile(opened: Callable[[], Opened], one: Drawn, binary: Path, limit_s: float) -> Profile:
    """Call once to compile and tune, once under the tool. Raises Stop, and GpuSick."""
    ends = time.monotonic() + limit_s
    session, single = opened()
    stopped: Stop | None = None
    try:
        with contextlib.closing(session):
            for profiled in (False, True):
                session.limits.call_s = session.limits.load_s = max(1.0, ends - time.monotonic())
                session.profiled = profiled
                trial.plainly(session, one)
    except Stop as stop:
        stopped = stop
    except RunnerBroken as error:  # it did not come up, and it did without the tool
        stopped = Stop("candidate-start", error.message)
    finally:
        report, log = single.file(REPORT_NAME), single.file(LOG_NAME).decode("utf-8", "replace")
        single.close()
    refused = trouble(log, report, stopped)
    if refused is not None:
        raise refused
    return Profile(read(report, binary), report)


def trouble(log: str, report: bytes, stopped: Stop | None) -> Stop | None:
    """Why there is no report, from the tool's own words."""
    if "ERR_NVGPUCTRPERM" in log:
        return Stop("no-counters", "the driver refuses performance counters to users who are no administrators")
    said = "; ".join(line.strip("= ").removeprefix("ERROR== ") for line in log.split("\n") if "==ERROR==" in line)[
        :1000
    ]
    if stopped is not None:
        message = f"with it: {stopped.message}" + (f"; {said}" if said else "")
        return Stop("profiler-refused", message, log=stopped.log or log[-2000:])
    if not report:
        return Stop("profiler-refused", said or "it left no report", log=log[-2000:])
    if len(report) >= REPORT_BYTES:
        return Stop("profiler-refused", f"its report is larger than {REPORT_BYTES} bytes", log=log[-2000:])
    return None


def read(report: bytes, binary: Path) -> tuple[Launch, ...]:
    """The launches in a report: by NVIDIA's module where there is one that can read it, else from the tool's own pages.

    Raises Stop("profiler-refused") for one that can't be read.
    """
    module = ncu_module.folder(instruments.home_of_nsight_compute(binary))
    with contextlib.suppress(ncu_report.Unreadable):  # of another version, say
        if module is not None:
            return by_module(module, report)
    with _laid(report) as folder:
        raw, details = (_page(binary, folder, page) for page in ("raw", "details"))
    try:
        return ncu_report.parse(raw, details)
    except ncu_report.Unreadable as error:
        said = " ".join(raw.split())[-300:]
        raise Stop("profiler-refused", f"its report can't be read: {error}; ncu says: {said or 'nothing'}") from error


def by_module(module: Path, report: bytes) -> tuple[Launch, ...]:
    """The launches of a report, by the module that lies in a folder. Raises ncu_report.Unreadable."""
    with _laid(report) as folder:
        inside = (Path(REPORT) if sandboxed() else folder) / REPORT_NAME
        line = [sys.executable, "-I", str(ncu_module.script()), str(module), str(inside), str(ncu_report.LAUNCHES)]
        return ncu_module.decoded(_output(line, (module, ncu_module.script()), folder, subprocess.DEVNULL))


@contextlib.contextmanager
def _laid(report: bytes) -> Iterator[Path]:
    """A folder with the report, which the sandbox's user may see."""
    with tempfile.TemporaryDirectory(prefix="kernelci-ncu-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / REPORT_NAME).write_bytes(report)
        (folder / REPORT_NAME).chmod(0o644)
        yield folder


def _page(binary: Path, folder: Path, page: str) -> str:
    """One page of a report as CSV, with the tool's complaints before or after it."""
    inside = Path(REPORT) if sandboxed() else folder
    line = [str(binary), "--import", str(inside / REPORT_NAME), "--page", page, "--csv", "--print-units", "base"]
    return _output(line, (instruments.home_of_nsight_compute(binary),), folder).decode("utf-8", "replace")


def _output(line: Sequence[str], shown: tuple[Path, ...], folder: Path, complaints: int = subprocess.STDOUT) -> bytes:
    """What a command prints of the report in a folder, in a sandbox that shows it these too; cut where it is long."""
    with tempfile.TemporaryFile() as output, _jailed(line, shown, folder) as whole:
        try:
            subprocess.run(
                whole,
                stdin=subprocess.DEVNULL,
                stderr=complaints,
                stdout=output,
                timeout=IMPORT_S,
                env=_ENVIRONMENT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {IMPORT_S:.0f} s".encode()
        output.seek(0)
        return output.read(ncu_report.MAX_CHARACTERS)


_ENVIRONMENT = {
    "LC_ALL": "C",
    "HOME": sandbox.PRIVATE,
    "TMPDIR": "/tmp",
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
}


@contextlib.contextmanager
def _jailed(line: Sequence[str], shown: tuple[Path, ...], folder: Path) -> Iterator[Sequence[str]]:
    if not sandboxed():
        yield line
        return
    with sandbox.Jail((), (), shown=shown, writable={REPORT: folder}, alone=True) as jail:
        yield jail.command(line)
