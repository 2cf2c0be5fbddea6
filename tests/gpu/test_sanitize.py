"""compute-sanitizer for real: each tool finds what is planted for it, with the line, and nothing in the clean twin."""

from pathlib import Path

import pytest

from kernelci import selftest
from kernelci.model import Report
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


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.path.stem)
def test_is_stopped_or_accepted(report: Report, member: selftest.Member) -> None:
    result = selftest.judge(member, report, {})
    assert (ACCEPTED if member.expect.honest else STOPPED) == result.verdict, result.detail


@pytest.mark.parametrize(
    "member", [one for one in MEMBERS if not one.expect.honest], ids=lambda member: member.path.stem
)
def test_line_of_the_source_is_named(report: Report, member: selftest.Member) -> None:
    kernel = next(one for one in report.kernels if Path(one.path).stem == member.path.stem)
    rung = kernel.rung("sanitize")
    assert rung is not None
    assert rung.finding is not None
    assert (f"{member.path.stem}.cu", True) == (Path(rung.finding.file).name, rung.finding.line > 0)
