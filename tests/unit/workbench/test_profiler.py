"""A run under Nsight Compute, with a stand-in for the tool: the same processes, sandbox and files."""

import sys
from pathlib import Path

import pytest
import torch

from kernelci.errors import Stop
from kernelci.reference import TensorSpec, check
from kernelci.workbench import ncu_module, profiler
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.oracle import Truth
from kernelci.workbench.protocol import Source
from kernelci.workbench.session import Limits, Session
from kernelci.workbench.single import Single

from .ncu_pages import DETAILS, RAW
from .test_ncu_module import STAND_IN as MODULE

# Starts the process, waits for it, and leaves a report and a log as the tool does; or prints a page of a report.
STAND_IN = """\
#!{python} -I
import os, pathlib, subprocess, sys
here = pathlib.Path(sys.argv[0]).parent
if "--import" in sys.argv:
    report = pathlib.Path(sys.argv[sys.argv.index("--import") + 1]).read_bytes()
    if report != b"a report":
        sys.exit("==ERROR== Failed to open the report")
    print((here / f"{{sys.argv[sys.argv.index('--page') + 1]}}.csv").read_text())
    sys.exit()
report, log = (pathlib.Path(sys.argv[sys.argv.index(name) + 1]) for name in ("--export", "--log-file"))
start = next(number for number, word in enumerate(sys.argv) if word == sys.executable)
code = subprocess.call(sys.argv[start:], close_fds=False)
log.write_text("{log}")
{leave}
sys.exit(code)
"""
WHOLE = "report.write_bytes(b'a report')"


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for NVIDIA's module, which knows no report of these."""
    folder = tmp_path / "module"
    folder.mkdir(mode=0o755)
    (folder / "ncu_report.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(ncu_module, "folder", lambda home: folder)
    return folder


def _profile(
    folder: Path, leave: str = WHOLE, log: str = "==PROF== done", body: str = "y.copy_(x)"
) -> profiler.Profile:
    """The profile of a kernel with this body by a stand-in that leaves this."""
    tool = folder / "ncu"
    tool.write_text(STAND_IN.format(python=sys.executable, leave=leave, log=log), encoding="utf-8")
    (folder / "raw.csv").write_text(RAW)
    (folder / "details.csv").write_text(DETAILS)
    tool.chmod(0o755)
    folder.chmod(0o755)  # the sandbox's user must see what is in it

    def opened() -> tuple[Session, Single]:
        source = Source("ours", "kernel.py", {"kernel.py": f"def f(x, y):\n    {body}\n".encode()})
        wrap = lambda place: profiler.command(tool, place)  # noqa: E731
        single = Single((), lambda cache: {}, wrap=wrap, shown=(folder,), folder=True)
        return Session(single, source, "f", "triton", "cpu", Limits(60.0, 60.0, 2**33)), single

    one = Drawn(check(rows=2), {"x": torch.ones(2)}, {"y": TensorSpec((2,), "float32")}, Truth({}, {}))
    return profiler.profile(opened, one, tool, 100.0)


def test_a_report_is_read_back(tmp_path: Path) -> None:
    found = _profile(tmp_path)
    assert (["softmax_tile", "tail"], b"a report") == ([each.kernel for each in found.launches], found.report)
    assert "SharedMemoryConflicts" == found.launches[0].advice[0].rule


def test_a_report_that_the_module_can_read_is_read_by_it(tmp_path: Path) -> None:
    told = """report.write_text('[{"name": "by the module", "metrics": {}, "rules": []}]')"""
    assert ["by the module"] == [each.kernel for each in _profile(tmp_path, told).launches]


@pytest.mark.parametrize(
    ("leave", "log", "body", "reason", "said"),
    [
        ("", "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "y.copy_(x)", "no-counters", "refuses"),
        ("", "==ERROR== LibraryNotLoaded", "y.copy_(x)", "profiler-refused", "LibraryNotLoaded"),
        ("", "", "y.copy_(x)", "profiler-refused", "it left no report"),
        ("report.write_bytes(b'a rep')", "", "y.copy_(x)", "profiler-refused", "can't be read: no table in the page"),
        ("report.symlink_to(sys.argv[0])", "", "y.copy_(x)", "profiler-refused", "it left no report"),
        ("os.mkfifo(report)", "", "y.copy_(x)", "profiler-refused", "it left no report"),
        (WHOLE, "", "raise KeyError(1)", "profiler-refused", "with it: KeyError: 1"),
    ],
)
def test_why_there_is_none(tmp_path: Path, leave: str, log: str, body: str, reason: str, said: str) -> None:
    with pytest.raises(Stop) as caught:
        _profile(tmp_path, leave, log, body)
    assert (reason, True) == (caught.value.reason, said in caught.value.message), caught.value.message


def test_the_tool_looks_at_the_call_only_and_leaves_clocks_alone() -> None:
    line = " ".join(profiler.command(Path("/ncu"), "/report"))
    assert "--profile-from-start off" in line
    assert "--clock-control none" in line
