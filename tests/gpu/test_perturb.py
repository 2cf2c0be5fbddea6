"""Disturbances for real: what counts on clean shared memory, on warps in step or on four warps is stopped."""

from pathlib import Path

import pytest

from kernelci import selftest
from kernelci.model import Report
from kernelci.score import ACCEPTED, STOPPED

CORPUS = Path(__file__).resolve().parents[1] / "bad_kernels"
MEMBERS = [member for member in selftest.corpus(CORPUS) if member.belongs(("X3", "X4")) and member.expect.gpu]
pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """One climb of them all, in the full tier."""
    found = selftest.climb(tmp_path_factory.mktemp("x4") / "project", MEMBERS, "full", rungs=("perturb",))
    assert found is not None
    return found


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.path.stem)
def test_is_stopped_or_accepted(report: Report, member: selftest.Member) -> None:
    result = selftest.judge(member, report, {})
    assert (ACCEPTED if member.expect.honest else STOPPED) == result.verdict, result.detail


@pytest.mark.parametrize("stem", ["x3_shared_padding", "x4_counts_on_four_warps"])
def test_what_is_right_undisturbed_is_stopped_here(report: Report, stem: str) -> None:
    kernel = next(one for one in report.kernels if Path(one.path).stem == stem)
    assert kernel.stopped_at is not None
    assert kernel.stopped_at.finding is not None
    assert ("perturb", "perturbed") == (kernel.stopped_at.rung, kernel.stopped_at.finding.reason)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.path.stem)
def test_every_disturbance_was_made(report: Report, member: selftest.Member) -> None:
    kernel = next(one for one in report.kernels if Path(one.path).stem == member.path.stem)
    rung = kernel.rung("perturb")
    notes = [note for row in rung.rows for note in row.notes] if rung is not None else []
    assert not [note for note in notes if note.startswith("the shared memory") and "not made" in note]
