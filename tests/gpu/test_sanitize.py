"""compute-sanitizer for real: each tool finds what is planted for it, with the line, and nothing in the clean twin."""

from pathlib import Path

import pytest

from kernelci import selftest
from kernelci.model import Report, RungResult
from kernelci.score import ACCEPTED, STOPPED
from kernelci.workbench import sanitizer

CORPUS = Path(__file__).resolve().parents[1] / "bad_kernels"
MEMBERS = [member for member in selftest.corpus(CORPUS) if member.belongs(("X5",))]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(sanitizer.find() is None, reason="no compute-sanitizer here"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """One climb of them all, with all tools."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sanitizer, "QUICK", tuple(sanitizer.TOOLS))
        found = selftest.climb(tmp_path_factory.mktemp("x5") / "project", MEMBERS)
    assert found is not None
    return found


BAD = [member for member in MEMBERS if not member.expect.honest]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.path.stem)
def test_is_stopped_or_accepted(report: Report, member: selftest.Member) -> None:
    result = selftest.judge(member, report, {})
    assert (ACCEPTED if member.expect.honest else STOPPED) == result.verdict, result.detail


def _rung(report: Report, member: selftest.Member) -> RungResult:
    kernel = next(one for one in report.kernels if Path(one.path).stem == member.path.stem)
    assert kernel.stopped_at is None or kernel.stopped_at.rung == "sanitize"
    rung = kernel.rung("sanitize")
    assert rung is not None
    return rung


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.path.stem)
def test_each_tool_sees_what_is_planted_for_it_and_nothing_else(report: Report, member: selftest.Member) -> None:
    """A tool that is skipped, since it takes too long or refuses, has seen nothing."""
    seen = {row.case: row.finding.reason if row.finding else "" for row in _rung(report, member).rows}
    planted = member.expect.reason
    assert {tool: reason if reason == planted else "" for tool, reason in sanitizer.TOOLS.items()} == seen


@pytest.mark.parametrize("member", BAD, ids=lambda member: member.path.stem)
def test_line_of_the_source_is_named(report: Report, member: selftest.Member) -> None:
    finding = _rung(report, member).finding
    assert finding is not None
    assert (f"{member.path.stem}.cu", True) == (Path(finding.file).name, finding.line > 0)
