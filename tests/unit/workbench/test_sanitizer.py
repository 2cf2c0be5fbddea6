"""compute-sanitizer's words read and judged, and which cases it gets. The outputs follow NVIDIA's documentation."""

import math
import shutil
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelci.errors import Stop
from kernelci.reasons import REASONS, Outcome
from kernelci.reference import Case, TensorSpec, check
from kernelci.workbench import sanitizer
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.oracle import Truth
from kernelci.workbench.protocol import Call, Source, TensorPlace
from kernelci.workbench.sanitizer import Inspection, choose, inspect, judge, notes
from kernelci.workbench.sanitizer_report import FOUND, Place, ToolReport, parse
from kernelci.workbench.session import Limits, Session
from kernelci.workbench.single import Single

OUTPUTS = Path(__file__).parent / "sanitizer_output"
CU = "/private/kernelci-kernel-9/softmax/past_the_end.cu"


def _report(name: str) -> ToolReport:
    return parse((OUTPUTS / f"{name}.txt").read_text(encoding="utf-8"))


def test_memcheck_finding_has_kind_place_thread_and_block() -> None:
    found = _report("memcheck").found[0]
    assert (
        "Invalid __global__ read of size 4 bytes",
        Place("softmax_row(const float *, float *, long long)", CU, 31),
        "(1,0,0)",
        "(2,0,0)",
    ) == (found.kind, found.place, found.thread, found.block)


def test_findings_of_one_kind_at_one_line_are_one() -> None:
    assert [2, 1] == [one.count for one in _report("memcheck").found]


def test_place_without_a_line_is_that_of_its_frame() -> None:
    assert Place("outer()", CU, 44) == _report("memcheck").found[1].place


def test_memcheck_finding_as_text() -> None:
    assert (
        "Invalid __global__ read of size 4 bytes at past_the_end.cu:31 in "
        "softmax_row(const float *, float *, long long), thread (1,0,0) of block (2,0,0) (2 reports)"
        "; Access at 0x7f71b9e01360 is out of bounds"
        "; and is 1 bytes after the nearest allocation at 0x7f71b9e00a00 of size 2,400 bytes"
    ) == _report("memcheck").found[0].text()


def test_failed_call_of_the_api_is_no_finding_of_the_kernel() -> None:
    (other,) = _report("memcheck").other
    assert other.startswith("Program hit cudaErrorLaunchFailure")


def test_race_names_both_lines() -> None:
    found = _report("racecheck").found[0]
    assert (41, 512, "and Read access at block_error.cu:51 in sumKernel(int *, int *)") == (
        found.place.line,
        found.count,
        found.details[0],
    )


def test_hazard_within_a_warp_is_a_warning() -> None:
    report = _report("racecheck")
    assert ([False, True], 1) == ([one.warning for one in report.found], len(report.errors))


def test_uninitialised_reads_in_two_notations() -> None:
    assert [
        Place("vectorAdd(int *)", "/home/cuda/memset_error.cu", 41),
        Place("sum_gpu_2(const int *, int *, unsigned int)", "/home/coding/52_sum.cl", 30),
    ] == [one.place for one in _report("initcheck").found]


def test_copies_by_the_host_are_no_finding_of_the_kernel() -> None:
    report = _report("initcheck")
    assert (2, 1) == (len(report.found), len(report.other))


def test_barrier_errors() -> None:
    assert [
        ("Barrier error detected. Divergent thread(s) in block", 42),
        ("Barrier error detected. Divergent thread(s) in warp", 0),
    ] == [(one.kind, one.place.line) for one in _report("synccheck").found]


@pytest.mark.parametrize(
    ("name", "total"),
    [("memcheck", 4), ("racecheck", 1), ("initcheck", 3), ("synccheck", 2), ("clean", 0), ("refused", None)],
)
def test_total(name: str, total: int | None) -> None:
    assert total == _report(name).total


def test_summaries_of_several_processes_add_up() -> None:
    assert 3 == parse("========= ERROR SUMMARY: 1 error\n========= ERROR SUMMARY: 2 errors\n").total


def test_what_the_kernel_prints_is_no_finding() -> None:
    assert ToolReport() == parse("Invalid __global__ read of size 4 bytes\n    at f()+0x10 in a.cu:3\n")


def test_endless_report_is_bounded() -> None:
    record = "========= Invalid __global__ read of size {0} bytes\n=========     at f()+0x10 in a.cu:{0}\n"
    assert FOUND == len(parse("".join(record.format(number) for number in range(10_000))).found)


_PIECES = st.sampled_from(
    [
        *(line for path in sorted(OUTPUTS.glob("*.txt")) for line in path.read_text(encoding="utf-8").splitlines()),
        "=========",
        "=========     at ",
        "=========     by thread (",
        "========= ERROR SUMMARY: 99999999999999999999 errors",
        "========= Error: Race reported between Write access at ",
    ]
)


@given(st.lists(_PIECES | st.text(max_size=80) | st.text(max_size=60).map("========= ".__add__)))
def test_any_text_is_read(lines: list[str]) -> None:
    report = parse("\n".join(lines))
    assert all(one.count > 0 and one.place.line >= 0 and len(one.text()) < 10_000 for one in report.found)


@given(st.lists(_PIECES))
def test_findings_are_distinct(lines: list[str]) -> None:
    found = parse("\n".join(lines)).found
    assert len(found) == len({(one.kind, one.place.file or one.place.symbol, one.place.line) for one in found})


def _judged(tool: str, name: str, stopped: Stop | None = None) -> Stop | None:
    return judge(Inspection(tool, _report(name), ("3x127",), stopped))


@pytest.mark.parametrize("tool", sanitizer.TOOLS)
def test_findings_fail_with_the_tools_reason(tool: str) -> None:
    stop = _judged(tool, tool)
    assert stop is not None
    assert (sanitizer.TOOLS[tool], Outcome.FAILED) == (stop.reason, REASONS[stop.reason].outcome)


def test_verdict_points_at_the_line() -> None:
    stop = _judged("memcheck", "memcheck")
    assert stop is not None
    assert (CU, 31) == (stop.file, stop.line)


def test_findings_weigh_more_than_the_fault_that_they_end_in() -> None:
    stop = _judged("memcheck", "memcheck", Stop("gpu-fault", "CUDA error"))
    assert stop is not None
    assert "sanitizer-memcheck" == stop.reason


def test_clean_run_passes() -> None:
    assert None is _judged("memcheck", "clean")


@pytest.mark.parametrize(
    ("name", "stopped", "reason", "said"),
    [
        ("refused", Stop("gpu-fault", "CUDA error 999"), "sanitizer-refused", "Device not supported"),
        ("refused", None, "sanitizer-refused", "no conclusion"),
        ("clean", Stop("raised", "KeyError: 1"), "sanitizer-refused", "KeyError: 1"),
        ("clean", Stop("hang", "no answer within 9 s"), "sanitizer-slow", "no answer within 9 s"),
    ],
)
def test_tool_that_can_not_do_its_work_is_skipped(name: str, stopped: Stop | None, reason: str, said: str) -> None:
    stop = _judged("memcheck", name, stopped)
    assert stop is not None
    assert (reason, Outcome.SKIPPED, True) == (stop.reason, REASONS[reason].outcome, said in stop.message)


def test_race_warnings_are_told_in_notes() -> None:
    told = notes(Inspection("racecheck", _report("racecheck"), ("3x127", "5x1")))
    assert ("cases: 3x127, 5x1", True) == (
        told[0],
        told[1].startswith("warning: Potential RAW hazard at warp_error.cu:44"),
    )


# Starts the process and waits for it, as the tool does; then says what the text beside it says.
STAND_IN = """\
import pathlib, subprocess, sys
place = sys.argv.index("--log-file")
start = next(number for number, word in enumerate(sys.argv) if word == sys.executable)
subprocess.call(sys.argv[start:], close_fds=False)
pathlib.Path(sys.argv[place + 1]).write_text(pathlib.Path(sys.argv[0]).with_suffix(".txt").read_text())
"""
# The same, but says so while the process is at work.
AT_ONCE = """\
import pathlib, subprocess, sys
place = sys.argv.index("--log-file")
start = next(number for number, word in enumerate(sys.argv) if word == sys.executable)
pathlib.Path(sys.argv[place + 1]).write_text(pathlib.Path(sys.argv[0]).with_suffix(".txt").read_text())
subprocess.call(sys.argv[start:], close_fds=False)
"""


def _opened(folder: Path, text: str) -> sanitizer.Opened:
    """A session of a kernel behind a stand-in for the tool."""
    tool = folder / "tool.py"

    def wrap(report: str) -> list[str]:
        return [sys.executable, "-I", *sanitizer.command(tool, "memcheck", report)]

    source = Source("ours", "kernel.py", {"kernel.py": text.encode()})
    single = Single((), lambda cache: {}, wrap=wrap, shown=(folder,))
    return Session(single, source, "f", "triton", "cpu", Limits(60.0, 60.0, 2**33), separate=True), single


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """The folder of a stand-in for the tool, which finds what is in memcheck.txt."""
    (tmp_path / "tool.py").write_text(STAND_IN, encoding="utf-8")
    shutil.copy(OUTPUTS / "memcheck.txt", tmp_path / "tool.txt")
    tmp_path.chmod(0o755)  # the sandbox's user must see what is in it
    return tmp_path


def test_one_run_over_two_cases(stand_in: Path) -> None:
    outputs = {"y": TensorSpec((2,), "float32")}
    drawn = [Drawn(check(rows=rows), {"x": torch.ones(2)}, outputs, Truth({}, {})) for rows in (1, 2)]
    found = inspect("memcheck", lambda: _opened(stand_in, "def f(x, y):\n    y.copy_(x)\n"), drawn, 100.0)
    assert (("1", "2"), None, 4) == (found.cases, found.stopped, found.report.total)


def test_smallest_case_comes_first_and_findings_there_are_enough(stand_in: Path) -> None:
    (stand_in / "tool.py").write_text(AT_ONCE, encoding="utf-8")
    drawn = [
        Drawn(check(rows=rows), {"x": torch.ones(rows)}, {"y": TensorSpec((rows,), "float32")}, Truth({}, {}))
        for rows in (512, 2)
    ]
    found = inspect("memcheck", lambda: _opened(stand_in, "def f(x, y):\n    y.copy_(x)\n"), drawn, 100.0)
    assert (("2",), None, 2) == (found.cases, found.stopped, len(found.report.errors))


def test_fault_during_a_run_is_told(stand_in: Path) -> None:
    drawn = [Drawn(check(rows=1), {}, {}, Truth({}, {}))]
    found = inspect("memcheck", lambda: _opened(stand_in, "def f():\n    return 1 / 0\n"), drawn, 100.0)
    assert found.stopped is not None
    assert ((), "raised", 4) == (found.cases, found.stopped.reason, found.report.total)


def _call(case: Case) -> Call:
    shape = (case.rows, case.cols)
    place = TensorPlace(0, shape, (case.cols, 1), case.dtype)
    return Call({}, {"x": place}, {"y": place})


def _chosen(*cases: Case, count: int = 3) -> list[str]:
    return [case.id for case in choose(cases, _call, lambda case: math.prod((case.rows, case.cols)), count)]


def test_largest_small_case_comes_first() -> None:
    small, large, huge = (check(rows=rows, cols=128, dtype="float32") for rows in (3, 999, 10**6))
    assert [large.id, small.id] == _chosen(small, large, huge)


def test_cases_without_elements_are_left_out() -> None:
    assert [] == _chosen(check(rows=0, cols=128, dtype="float32"))


def test_unlike_cases_are_preferred() -> None:
    first = check(rows=64, cols=1024, dtype="float32")
    twin = check(rows=63, cols=1024, dtype="float32")
    unlike = check(rows=1, cols=3, dtype="float16")
    assert [first.id, unlike.id] == _chosen(first, twin, unlike, count=2)


def test_command_keeps_its_words_apart_from_the_kernels() -> None:
    line = sanitizer.command(Path("/opt/compute-sanitizer"), "racecheck", "/report")
    assert ("/opt/compute-sanitizer", "/report") == (line[0], line[line.index("--log-file") + 1])
