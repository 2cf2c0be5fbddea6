"""The corpus of known kernels: each bad one is stopped where its card says, with a message that names the cause, and
alone; each honest one passes. It is what `kernelci selftest` climbs with.

A new kernel is a new file in tests/bad_kernels with its `[tool.kernelci.expect]` table.
"""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kernelci import results, selftest
from kernelci.card import Expectation
from kernelci.catalog import Kernel
from kernelci.cli import cli
from kernelci.model import SCHEMA_VERSION, Environment, Finding, KernelReport, Report, Row, RungResult, Verdict
from kernelci.reasons import Outcome
from kernelci.score import ACCEPTED, MISSED, NOT_RUN, STOPPED
from kernelci.selftest import INTERRUPTED, Member

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = {member.path.stem: member for member in selftest.corpus(ROOT / "tests" / "bad_kernels")}
BAD = [stem for stem, member in MEMBERS.items() if not member.expect.honest]
HONEST = [stem for stem, member in MEMBERS.items() if member.expect.honest]
# What the message must say, so that the reader knows the cause.
CAUSES = {
    "a10_slow_in_short_windows": "by the windows of",
    "a11_computes_before_the_go": "something computes",
    "a12_spoils_the_other_side": "beside head the base is output y of slot",
    "a1_side_stream": "by the candidate's events",
    "a5_no_time_at_all": "no time at all",
    "b5_batch_in_a_graph": "in one call",
    "compile_error": "total is not defined",
    "d8_store_before_the_output": "4 bytes before y were overwritten",
    "does_not_parse": "(line ",
    "e1_falls_back_while_timed": "0 % of the time in kernels of its own",
    "e1_no_kernel_at_all": "launched no kernel",
    "eats_memory": "memory",
    "endless_native_call": "no answer within",
    "exits_with_zero": "exit code 0",
    "f4_markdown_in_its_message": "ValueError: </details>",
    "illegal_access": "illegal memory access",
    "last_k_block_skipped": "times its bound",
    "m09_tile_of_minus_infinity": "are NaN or Inf on one side only",
    "m19_gradient_over_the_input": "input dy",
    "nan_in_one_element": "1 of 381 elements",
    "never_returns": "no answer within",
    "no_maximum_subtracted": "output y, draw ",
    "one_element_unwritten": "never written; first at",
    "other_parameters": "softmax(x, y)",
    "raises": "127 columns are no multiple of 16",
    "returns_nothing": "returned no torch.Tensor for y",
    "segfaults": "SIGSEGV",
    "store_past_the_end": "4 bytes after y were overwritten",
    "sys_exit": "exit code 0",
    "tail_off_by_one": "times its bound",
    "too_much_shared_memory": "bytes of shared memory needed",
    "unknown_reference": "no reference 'sofmax'; known are capped_softmax, ",
    "writes_an_input": "input x",
    "wrong_dtype": "dtype float32, and float16 is declared",
    "wrong_entry": "'soft_max'; the file defines",
    "x3_masked_load_without_other": "masked loads without other= read NaN, and then: output y: ",
    "x4_counts_on_the_order_of_blocks": "it has blocks that count on others to have run before them",
    "wrong_shape": "(127, 3), and (3, 127) is declared",
}


def _shared(
    tmp_path_factory: pytest.TempPathFactory, name: str, members: list[Member], rungs: tuple[str, ...]
) -> Report:
    """One climb with these members; several test processes share it."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / name
    with (root.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (root / "out" / results.FILE_NAME).exists():
            return results.read(root / "out")
        report = selftest.climb(root, members, rungs=rungs)
    assert report is not None
    return report


@pytest.fixture(scope="session")
def left_out() -> dict[str, str]:
    """Which members show nothing on this machine, and why."""
    return selftest.reasons_not_to_run(MEMBERS.values(), selftest.gpu(), "pr")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory, left_out: dict[str, str]) -> Report:
    """One climb with all that this machine can show."""
    members = [member for stem, member in MEMBERS.items() if stem not in left_out]
    return _shared(tmp_path_factory, "corpus", members, ())


def _of(report: Report, stem: str) -> KernelReport:
    found = [kernel for kernel in report.kernels if Path(kernel.path).stem == stem]
    if not found:
        pytest.skip("nothing on this machine shows it")
    return found[0]


@pytest.mark.parametrize("stem", BAD)
def test_bad_kernel_is_stopped_where_its_card_says(report: Report, left_out: dict[str, str], stem: str) -> None:
    _of(report, stem)
    member = MEMBERS[stem]
    result = selftest.judge(member, report, left_out)
    assert (STOPPED, "") == (result.verdict, "" if member.expect.luck else result.detail)


@pytest.mark.parametrize("stem", HONEST)
def test_honest_kernel_passes(report: Report, left_out: dict[str, str], stem: str) -> None:
    _of(report, stem)
    result = selftest.judge(MEMBERS[stem], report, left_out)
    assert (ACCEPTED, "") == (result.verdict, result.detail)


@pytest.mark.parametrize("stem", CAUSES)
def test_message_names_the_cause(report: Report, stem: str) -> None:
    stopped = _of(report, stem).stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    assert CAUSES[stem] in stopped.finding.message


def test_no_bad_kernel_breaks_the_runner(report: Report) -> None:
    assert Outcome.FAILED == report.outcome


def test_a_process_that_is_gone_leaves_its_last_words(report: Report) -> None:
    stopped = _of(report, "sys_exit").stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    assert "SystemExit: 0" in stopped.finding.log


def test_a_compile_error_names_file_and_line(report: Report) -> None:
    stopped = _of(report, "compile_error").stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    text = MEMBERS["compile_error"].path.read_text(encoding="utf-8")
    line = text.splitlines()[stopped.finding.line - 1]
    assert ("kernels/compile_error.py", True) == (stopped.finding.file, "total" in line)


def test_rungs_above_the_one_that_stopped_are_skipped(report: Report) -> None:
    kernel = _of(report, "raises")
    assert ["FAILED", "SKIPPED"] == [rung.outcome for rung in kernel.rungs if rung.rung in ("run", "correctness")]


@pytest.mark.slow
def test_kernels_that_only_a_gpu_shows_compile(
    tmp_path_factory: pytest.TempPathFactory, left_out: dict[str, str]
) -> None:
    members = [MEMBERS[stem] for stem in left_out]
    if not members:
        pytest.skip("this machine shows every member")
    climbed = _shared(tmp_path_factory, "compiled", members, ("compile",))
    stopped = {kernel.name: kernel.stopped_at.finding for kernel in climbed.kernels if kernel.stopped_at}
    assert {} == stopped


def test_every_class_is_there() -> None:
    classes = {member.expect.class_ for member in MEMBERS.values()}
    assert {f"A{number}" for number in range(1, 13)} | {f"E{number}" for number in range(1, 5)} <= classes
    assert {f"B{number}" for number in range(1, 9)} | {f"C{number}" for number in range(1, 8)} <= classes
    assert {f"D{number}" for number in range(1, 11) if number != 4} <= classes
    assert {"F1", "F3", "F4", "F5", "F6"} <= classes


def test_every_member_has_a_class_and_a_title() -> None:
    assert [] == [stem for stem, member in MEMBERS.items() if not (member.expect.class_ and member.expect.title)]


def test_titles_are_not_shared() -> None:
    titles = [member.expect.title for member in MEMBERS.values()]
    assert [] == sorted({title for title in titles if titles.count(title) > 1})


def test_bases_are_members() -> None:
    assert {member.expect.base for member in MEMBERS.values()} - {""} <= set(MEMBERS)


def _climbed(outcome: Outcome, reason: str = "", said: str = "", verdict: Verdict = Verdict.NONE) -> Report:
    """A report of a member named `m05_clean` that ended so in the benchmark rung."""
    finding = Finding(reason, said) if reason else None
    row = Row(outcome, "512x1024", finding=finding, notes=(said,), verdict=verdict)
    rung = RungResult("benchmark", outcome, finding=finding, rows=(row,))
    kernel = KernelReport("m05_clean", "softmax", "triton", "kernels/m05_clean.py", "", (rung,))
    return Report(SCHEMA_VERSION, "", "", 0.0, Environment("", ""), (kernel,))


GAINED_NOTHING = Expectation("benchmark", "PASSED", verdicts=("SAME", "UNKNOWN"))
COPY = Expectation("benchmark", "PASSED", verdicts=("SAME",), said="byte for byte")
SLOW = Expectation("benchmark", "FAILED", reason="slower", said="than base")


@pytest.mark.parametrize(
    ("expect", "report", "verdict"),
    [
        (GAINED_NOTHING, _climbed(Outcome.PASSED, verdict=Verdict.SAME), STOPPED),
        (GAINED_NOTHING, _climbed(Outcome.PASSED, verdict=Verdict.FASTER), MISSED),
        (GAINED_NOTHING, _climbed(Outcome.PASSED), MISSED),
        (GAINED_NOTHING, _climbed(Outcome.INVALID, "clocks-disagree"), STOPPED),
        (GAINED_NOTHING, _climbed(Outcome.FAILED, "slower"), MISSED),
        (COPY, _climbed(Outcome.PASSED, said="the base's own, byte for byte", verdict=Verdict.SAME), STOPPED),
        (COPY, _climbed(Outcome.PASSED, verdict=Verdict.SAME), MISSED),
        (COPY, _climbed(Outcome.INVALID, "clocks-disagree"), MISSED),
        (SLOW, _climbed(Outcome.FAILED, "slower", "5 % slower than base"), STOPPED),
        (SLOW, _climbed(Outcome.FAILED, "slower", "5 % slower"), MISSED),
    ],
)
def test_what_must_be_said_or_not_be_gained(expect: Expectation, report: Report, verdict: str) -> None:
    assert verdict == selftest.judge(Member(Path("m05_clean.py"), "triton", expect), report, {}).verdict


def test_a_tool_that_was_skipped_is_told_though_the_others_passed() -> None:
    rows = (Row(Outcome.PASSED, "memcheck"), Row(Outcome.SKIPPED, "initcheck", finding=Finding("sanitizer-slow", "")))
    rung = RungResult("sanitize", Outcome.PASSED, rows=rows)
    assert "sanitize PASSED (initcheck SKIPPED sanitizer-slow)" == selftest._ended(rung)


def test_what_takes_long_begins_first_and_what_has_a_base_comes_last() -> None:
    stems = ("honest_timed_softmax", "a6_slow_warm_up", "honest_prints", "raises", "x5_clean", "never_returns")
    order = sorted((MEMBERS[stem] for stem in stems), key=selftest._turn)
    assert ["never_returns", "x5_clean", "raises", "honest_timed_softmax", "honest_prints", "a6_slow_warm_up"] == [
        member.path.stem for member in order
    ]


@pytest.mark.parametrize(
    ("machine", "groups"), [("", [["m33_spills"], ["raises"]]), ("H200", [["raises", "m33_spills"]])]
)
def test_what_is_disassembled_is_apart_where_there_are_few_cores(machine: str, groups: list[list[str]]) -> None:
    found = selftest._groups([MEMBERS["raises"], MEMBERS["m33_spills"]], machine)
    assert groups == [[member.path.stem for member in group] for group in found]


def test_progress_tells_of_each_member_once() -> None:
    lines: list[str] = []
    member = _member("m05")
    tell = selftest.progress([member], lines.append)
    assert tell is not None
    kernel = Kernel("softmax/m05_clean", Path("m05_clean.py"), None)
    for rung, outcome, reason in (
        ("precheck", Outcome.PASSED, ""),
        ("run", Outcome.FAILED, "shape"),
        ("correctness", Outcome.SKIPPED, "earlier-rung"),
    ):
        tell(kernel, RungResult(rung, outcome, finding=Finding(reason, "why") if reason else None))
    assert ["m05_clean: run FAILED shape: why (0.0 s; expected: run FAILED)"] == lines


RACE = Expectation("sanitize", "FAILED", reason="sanitizer-race", luck=True)


def _climbs(*rungs: tuple[str, Outcome, str]) -> Report:
    """A report of a member named `m05_clean` whose rungs ended so."""
    done = tuple(
        RungResult(name, outcome, finding=Finding(reason, "") if reason else None) for name, outcome, reason in rungs
    )
    kernel = KernelReport("m05_clean", "softmax", "cuda", "kernels/m05_clean.py", "", done)
    return Report(SCHEMA_VERSION, "", "", 0.0, Environment("", ""), (kernel,))


@pytest.mark.parametrize(
    ("expect", "rung", "verdict", "detail"),
    [
        (RACE, ("sanitize", Outcome.FAILED, "sanitizer-race"), STOPPED, ""),
        (RACE, ("correctness", Outcome.FAILED, "wrong"), STOPPED, "correctness FAILED wrong: "),
        (RACE, ("run", Outcome.FAILED, "hang"), STOPPED, "run FAILED hang: "),
        (RACE, ("compile", Outcome.FAILED, "compile-error"), MISSED, "compile FAILED compile-error: "),
        (RACE, ("correctness", Outcome.BROKEN, "reference"), MISSED, "correctness BROKEN reference: "),
        (RACE, ("sanitize", Outcome.FAILED, "sanitizer-sync"), MISSED, "sanitize FAILED sanitizer-sync: "),
        (
            msgspec.structs.replace(RACE, luck=False),
            ("correctness", Outcome.FAILED, "wrong"),
            MISSED,
            "correctness FAILED wrong: ",
        ),
    ],
)
def test_a_race_may_be_seen_by_luck(
    expect: Expectation, rung: tuple[str, Outcome, str], verdict: str, detail: str
) -> None:
    result = selftest.judge(Member(Path("m05_clean.py"), "cuda", expect), _climbs(rung), {})
    assert (verdict, detail) == (result.verdict, result.detail)


@pytest.mark.parametrize(
    ("rungs", "verdict"),
    [
        ([("run", Outcome.PASSED, ""), ("correctness", Outcome.SKIPPED, "interrupted")], NOT_RUN),
        ([("run", Outcome.FAILED, "shape"), ("correctness", Outcome.SKIPPED, "interrupted")], STOPPED),
        ([("run", Outcome.FAILED, "hang"), ("correctness", Outcome.SKIPPED, "interrupted")], MISSED),
        ([("correctness", Outcome.FAILED, "wrong"), ("benchmark", Outcome.SKIPPED, "interrupted")], MISSED),
    ],
)
def test_what_an_interrupt_cut_off_was_not_run(rungs: list[tuple[str, Outcome, str]], verdict: str) -> None:
    expect = Expectation(rungs[0][0] if verdict == STOPPED else rungs[-1][0], "FAILED", reason="shape")
    assert verdict == selftest.judge(Member(Path("m05_clean.py"), "triton", expect), _climbs(*rungs), {}).verdict


def test_members_that_an_interrupt_left_out_were_not_run() -> None:
    empty = msgspec.structs.replace(_climbs(), kernels=())
    result = selftest.judge(Member(Path("m05_clean.py"), "triton", RACE), empty, {})
    assert (NOT_RUN, INTERRUPTED) == (result.verdict, result.detail)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_the_score_of_those_that_were_judged(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "kernelci", "selftest", "--class", "does_not_parse,never_returns"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert " s  does_not_parse: precheck FAILED syntax" in process.stderr.readline()
        process.send_signal(number)
        lines = process.stdout.read().splitlines()
        assert (130, "") == (process.wait(), process.stderr.read())
    assert ["total", "1/1", "1"] == lines[-4].split()
    assert ["not run here: interrupted (1)", "  never_returns"] == lines[-2:]


def _member(class_: str) -> Member:
    return Member(Path("m05_clean.py"), "triton", Expectation("run", "FAILED", class_=class_))


@pytest.mark.parametrize(
    ("class_", "asked", "belongs"),
    [
        ("A1", ("A",), True),
        ("A1", ("A1",), True),
        ("A11", ("A1",), False),
        ("m05", ("m",), True),
        ("honest", ("honest",), True),
        ("honest", ("m05_clean",), True),
        ("A1", (), True),
    ],
)
def test_classes_select(class_: str, asked: tuple[str, ...], belongs: bool) -> None:
    assert belongs == _member(class_).belongs(asked)


def test_command_climbs_a_class_and_keeps_its_report(report: Report, tmp_path: Path) -> None:
    args = ["selftest", "--class", "does_not_parse,wrong_entry", "--out", str(tmp_path / "kept")]
    done = CliRunner().invoke(cli, args, standalone_mode=False)
    kept = {Path(kernel.path).stem for kernel in results.read(tmp_path / "kept").kernels}
    assert (0, ["total", "2/2"]) == (done.return_value, done.output.splitlines()[-1].split())
    assert {"does_not_parse", "wrong_entry"} == kept


def test_unknown_class_is_a_clear_error() -> None:
    done = CliRunner().invoke(cli, ["selftest", "--class", "Z9"], standalone_mode=False)
    assert "no class Z9" in str(done.exception)
