"""What is taken over of a second referee's report: only what was asked about, small, and beside the first's rows."""

from types import ModuleType

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelci import results, second
from kernelci.model import Artifact, Finding, KernelReport, Metric, Row, RungResult, Second, Unit
from kernelci.reasons import Outcome
from kernelci.second import Confined

ASKED = (KernelReport("softmax/triton", "softmax", "triton", "kernels/softmax/triton.py", "ab", ()),)
RAN = Confined("bubblewrap for the whole run")


def forged(reports: ModuleType, *kernels: KernelReport) -> bytes:
    return results.encode(reports.report(kernels))


def said(*rungs: RungResult, name: str = "softmax/triton") -> KernelReport:
    return KernelReport(name, "evil", "evil", "../../etc/passwd", "00", rungs)


def test_a_kernel_keeps_the_name_and_file_that_the_trusted_side_knows(reports: ModuleType) -> None:
    data = forged(reports, said(RungResult("correctness", Outcome.PASSED)))
    (kernel,) = second.admitted(data, ASKED, RAN, "ada").kernels
    assert msgspec.structs.replace(ASKED[0], rungs=(RungResult("correctness", Outcome.PASSED),)) == kernel


def test_kernels_that_nobody_asked_about_are_dropped(reports: ModuleType) -> None:
    data = forged(reports, said(name="softmax/cuda"))
    assert Second((), "ada", RAN.isolation, "it said nothing of softmax/triton") == second.admitted(
        data, ASKED, RAN, "ada"
    )


def test_no_file_and_no_command_is_taken_over(reports: ModuleType) -> None:
    bad = Finding("wrong", "wrong", reproduce="kernelci run; rm -rf /")
    rung = RungResult("run", Outcome.FAILED, finding=bad, artifacts=(Artifact("dumps/x", "sass", 1),))
    (kernel,) = second.admitted(forged(reports, said(rung)), ASKED, RAN, "").kernels
    assert RungResult("run", Outcome.FAILED, finding=Finding("wrong", "wrong")) == kernel.rungs[0]


def test_a_rung_has_a_plain_name_and_is_there_once(reports: ModuleType) -> None:
    names = ("run", "run", "## approved", "x" * 41, "own-rung")
    data = forged(reports, said(*(RungResult(name, Outcome.PASSED) for name in names)))
    (kernel,) = second.admitted(data, ASKED, RAN, "").kernels
    assert ["run", "own-rung"] == [rung.rung for rung in kernel.rungs]


def test_of_many_rows_those_that_did_not_pass_stay(reports: ModuleType) -> None:
    wrong = Row(Outcome.FAILED, "last", finding=Finding("wrong", "wrong"))
    rows = (*(Row(Outcome.PASSED, f"case {index}") for index in range(5000)), wrong)
    rung = RungResult("run", Outcome.FAILED, finding=Finding("wrong", "wrong"), rows=rows)
    (kept,) = second.admitted(forged(reports, said(rung)), ASKED, RAN, "").kernels[0].rungs
    assert (wrong, 200, ("4,801 more rows were left out",)) == (kept.rows[0], len(kept.rows), kept.notes)


def test_a_report_that_is_huge_becomes_small(reports: ModuleType) -> None:
    metrics = tuple(Metric(f"{index}" * 200, 1.0, Unit.NONE, "n" * 300, "d" * 2000) for index in range(3))
    rows = tuple(Row(Outcome.PASSED, f"{index}", metrics=metrics) for index in range(200))
    rungs = tuple(RungResult(f"r{index}", Outcome.PASSED, rows=rows) for index in range(9))
    data = forged(reports, said(*rungs))
    found = second.admitted(data, ASKED, RAN, "")
    assert len(msgspec.json.encode(found)) <= second.KEPT_BYTES < len(data)
    assert 9 == len(found.kernels[0].rungs)


def test_bytes_that_are_no_report_are_a_sentence() -> None:
    for data in (b"", b"{}", b"[" * 100_000, b'{"schema_version": 1, "schema_version": 1}', b"\0" * 100):
        found = second.admitted(data, ASKED, RAN, "ada")
        assert ((), True) == (found.kernels, found.why.startswith("it left no report that can be read: "))


def test_what_the_sandbox_says_comes_first(reports: ModuleType) -> None:
    found = second.admitted(forged(reports, said()), ASKED, Confined("b", "it was not done within 3 s", "last"), "ada")
    assert Second((), "ada", "b", "it was not done within 3 s", "last") == found


def test_what_else_went_wrong_is_said(reports: ModuleType) -> None:
    found = second.admitted(forged(reports, said()), ASKED, Confined("b", remark="no page"), "ada")
    assert ("no page", 1) == (found.why, len(found.kernels))


@given(st.binary(max_size=300), st.text(max_size=50))
@settings(max_examples=50, deadline=None)
def test_nothing_that_comes_out_raises(data: bytes, log: str) -> None:
    found = second.admitted(data, ASKED, Confined("b", log=log), "x")
    assert found == msgspec.json.decode(msgspec.json.encode(found), type=Second)


def test_rows_of_a_second_referee_count_for_nothing(reports: ModuleType) -> None:
    green = said(RungResult("correctness", Outcome.PASSED))
    for first in (reports.one_wrong(), reports.all_skipped(), reports.report(())):
        with_second = msgspec.structs.replace(first, second=Second((green,)))
        assert (first.outcome, first.exit_code) == (with_second.outcome, with_second.exit_code)


def test_a_judge_that_could_be_heard_is_offered_until_it_was(reports: ModuleType) -> None:
    from kernelci.model import Change, JudgeChange

    def offered(role: str, unjudged: tuple[str, ...] = (), heard: Second | None = None) -> bool:
        change = Change("b", "a", (JudgeChange("x", role, "added"),), unjudged=unjudged)  # type: ignore[arg-type]
        return second.is_offered(msgspec.structs.replace(reports.all_green(), change=change, second=heard))

    assert [True, False, True, False] == [
        offered("reference"), offered("workflow"), offered("workflow", ("new/a",)), offered("rung", heard=Second()),
    ]  # fmt: skip


def test_who_can_have_it_heard() -> None:
    assert second.how(("ada", "bob")).startswith("one of ada, bob can have ")
    assert second.how().startswith("somebody who maintains or administers the repository can have ")
