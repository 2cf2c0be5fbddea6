"""Finding the commit, with a made-up judge and in a real repository."""

import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.errors import ConfigError
from kernelci.history import Event
from kernelci.model import Finding, Metric, Row, RungResult, Unit, Verdict
from kernelci.nightly import bisect, remeasure, telling
from kernelci.nightly.detect import Suspect
from kernelci.nightly.remeasure import Paired
from kernelci.reasons import Outcome
from tests.conftest import load


@given(st.integers(1, 200), st.data())
def test_the_first_slow_commit_is_found_in_few_measurements(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    commits = [f"c{place}" for place in range(count)]

    found = bisect.search(commits, lambda commit: Paired("SLOWER" if int(commit[1:]) >= first else "SAME", 0.03))

    assert (f"c{first}",) == found.commits
    assert len(found.tried) <= count.bit_length() + 1


@given(st.integers(2, 60), st.data())
def test_commits_without_an_answer_are_passed_over(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    open_ones = data.draw(st.sets(st.integers(0, count - 2)))

    def judge(commit: str) -> Paired:
        place = int(commit[1:])
        return Paired("UNKNOWN" if place in open_ones else "SLOWER" if place >= first else "SAME")

    found = bisect.search([f"c{place}" for place in range(count)], judge)

    left = [int(commit[1:]) for commit in found.commits]
    assert first in left
    assert set(left[:-1]) <= open_ones


@pytest.mark.parametrize(
    ("commits", "answers", "last"),
    [
        ("ab", {"a": "SAME", "b": "SLOWER"}, "first slow: b"),
        ("abc", {"b": "UNKNOWN", "a": "SAME", "c": "SLOWER"}, "one of 2: b, c; what lies between gave no answer"),
        ("ab", {"b": "UNKNOWN"}, "not decided: the bad commit could not be told from the good one"),
        ("ab", {"b": ""}, "not decided: the bad commit could not be measured, for the reason above"),
        ("ab", {"b": "SAME"}, "no commit made it slower: the bad one is not slower than the good one on this GPU"),
        ("", {}, "no commit between the two touches the kernel's folder, its reference or the configuration"),
    ],
)
def test_the_last_line_says_what_was_found(commits: str, answers: dict[str, str], last: str) -> None:
    def judge(commit: str) -> Paired:
        said = answers[commit]
        return Paired(said, 0.01) if said else Paired("UNKNOWN", text="correctness failed")

    found = bisect.search(commits, judge)

    said = telling.bisected(found).splitlines()

    assert said[-1].startswith(last)
    assert len(found.tried) + 1 == len(said)


def test_a_commit_that_made_it_faster_is_good() -> None:
    answers = {"a": "FASTER", "b": "SAME", "c": "SLOWER", "d": "SLOWER"}

    assert ("c",) == bisect.search("abcd", lambda commit: Paired(answers[commit])).commits


def test_what_is_not_slower_has_no_culprit() -> None:
    found = bisect.search("abc", lambda commit: Paired("SAME"))

    assert ((), 1) == (found.commits, len(found.tried))


def test_no_commit_is_no_culprit() -> None:
    assert bisect.Found((), ()) == bisect.search((), lambda commit: Paired("SLOWER"))


def test_no_commit_is_measured_twice() -> None:
    asked: list[str] = []

    def judge(commit: str) -> Paired:
        asked.append(commit)
        return Paired("UNKNOWN" if commit in "bcd" else "SLOWER")

    bisect.search("abcde", judge)

    assert sorted(set(asked)) == sorted(asked)


def test_what_the_first_slow_commit_showed_is_kept() -> None:
    found = bisect.search("ab", lambda commit: Paired("SLOWER", 0.02 if commit == "a" else 0.03))

    assert found.paired is not None
    assert 0.02 == found.paired.delta


def _scratch() -> ModuleType:
    return load(Path(__file__).parents[1] / "hub" / "scratch.py", "nightly_scratch")


def test_candidates_are_the_commits_that_touch_the_kernel(tmp_path: Path) -> None:
    scratch = _scratch()
    root = scratch.repository(tmp_path / "repository")
    good = scratch.git(root, "rev-parse", "HEAD")
    scratch.commit(root, {"README.md": "other\n"})
    touched = scratch.commit(root, {"kernels/sum/one.py": scratch.CARD.format("sum") + "one = 2\n"})
    judged = scratch.commit(root, {"references/sum.py": "reference = 2\n"})
    scratch.commit(root, {"kernels/max/one.py": "other\n"})

    assert (touched, judged) == bisect.candidates(root, "sum/one", good, "HEAD")


def test_a_good_commit_that_comes_later_is_refused(tmp_path: Path) -> None:
    scratch = _scratch()
    root = scratch.repository(tmp_path / "repository")
    bad = scratch.git(root, "rev-parse", "HEAD")
    good = scratch.commit(root, {"README.md": "other\n"})

    with pytest.raises(ConfigError, match="before"):
        bisect.candidates(root, "sum/one", good, bad)


def test_a_commit_that_is_not_there_is_named(tmp_path: Path) -> None:
    root = _scratch().repository(tmp_path / "repository")

    with pytest.raises(ConfigError, match="this repository has no commit 'v9'"):
        bisect.candidates(root, "sum/one", "v9", "HEAD")


def test_a_ladder_that_leaves_no_report_says_so(tmp_path: Path) -> None:
    root = _scratch().repository(tmp_path / "repository")

    found = remeasure.measurer(root)("sum/nothing", "c", "HEAD", "HEAD")

    assert ("UNKNOWN", "the ladder left no report (exit code 2); its message stands above") == (
        found.verdict,
        found.text,
    )


def test_a_reports_verdict_is_the_answer(reports) -> None:
    metrics = (Metric("delta", 0.03, Unit.FRACTION, "delta", "", 0.02, 0.04),)
    row = Row(Outcome.FAILED, "c", finding=Finding("slower", "m"), metrics=metrics, verdict=Verdict.SLOWER)
    timed = RungResult("benchmark", Outcome.FAILED, finding=Finding("slower", "m"), rows=(row,))
    report = reports.report((reports.kernel("softmax/a", timed),))

    assert Paired("SLOWER", 0.03, 0.02, 0.04) == remeasure.read(report, "softmax/a", "c")
    assert "UNKNOWN" == remeasure.read(report, "softmax/a", "other").verdict
    assert "UNKNOWN" == remeasure.read(report, "softmax/b", "c").verdict


def test_a_kernel_that_fails_leaves_it_open_and_says_why(reports) -> None:
    stopped = RungResult("benchmark", Outcome.SKIPPED, finding=Finding("no-bench-cases", "correctness failed"))
    report = reports.report((reports.kernel("softmax/a", stopped),))

    assert Paired("UNKNOWN", text="correctness failed") == remeasure.read(report, "softmax/a", "c")


def test_commits_that_can_not_be_measured_leave_it_open(tmp_path: Path) -> None:
    scratch = _scratch()
    root = scratch.repository(tmp_path / "repository")

    found = remeasure.measurer(root)("sum/one", "c", "no-such-commit", "HEAD")

    assert "UNKNOWN" == found.verdict
    assert found.text


def test_the_answer_names_the_commit() -> None:
    found = bisect.search(["a" * 40, "b" * 40], lambda commit: Paired("SLOWER", 0.03, 0.02, 0.04))

    assert f"first slow: {'a' * 40}" in telling.bisected(found)
    assert "SLOWER +3.0% [+2.0%, +4.0%]" in telling.bisected(found)


def _suspect(size: float = 0.03) -> Suspect:
    day = datetime.date(2026, 11, 30)
    return Suspect("softmax/a", "c", "NVIDIA H200", day, day, "a" * 40, "b" * 40, size, 4.0, "step")


@pytest.mark.parametrize(
    ("answers", "verdict", "asked"),
    [
        ([Paired("UNKNOWN", 0.03, 0.0, 0.06), Paired("SLOWER", 0.03, 0.01, 0.05)], "SLOWER", 2),
        ([Paired("UNKNOWN", 0.03, 0.0, 0.06)] * remeasure.TRIES, "UNKNOWN", remeasure.TRIES),
        ([Paired("UNKNOWN", 0.0, -0.01, 0.01)], "UNKNOWN", 1),  # it rules out half of what was suspected
        ([Paired("UNKNOWN", text="correctness failed")], "UNKNOWN", 1),
        ([Paired("SAME", 0.0, -0.001, 0.001)], "SAME", 1),
    ],
)
def test_what_pairs_leave_open_is_measured_again_and_not_for_ever(
    answers: list[Paired], verdict: str, asked: int
) -> None:
    left = list(answers)

    (event,) = remeasure.events([_suspect()], lambda *what: left.pop(0))

    assert (verdict, asked) == (event.verdict, len(answers) - len(left))


class Judge:
    """A kernel that is slower from one commit on."""

    def __init__(self, commits: list[str], first: str) -> None:
        self.slow, self.asked = commits[commits.index(first) :], 0

    def __call__(self, kernel: str, case: str, good: str, bad: str) -> Paired:
        self.asked += 1
        return Paired("SLOWER" if bad in self.slow else "SAME", 0.04)


def _answer(good: str, bad: str, kernel: str = "sum/one", verdict: Any = "SLOWER", delta: float = 0.03) -> Event:
    day = datetime.date(2026, 11, 30)
    return Event(day, "remeasured", kernel, "c", "NVIDIA H200", day, good, bad, verdict, delta, 0.02, 0.04)


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository, and its first commit with the three that touched the kernel since."""
    scratch = _scratch()
    root = scratch.repository(tmp_path / "repository")
    commits = [scratch.git(root, "rev-parse", "HEAD")]
    for number in range(3):
        scratch.commit(root, {"README.md": f"{number}\n"})
        text = scratch.CARD.format("sum") + f"one = {number + 2}\n"
        commits.append(scratch.commit(root, {"kernels/sum/one.py": text}))
    return root, commits


def test_a_night_looks_for_the_commit_of_what_it_found_slower(history: tuple[Path, list[str]]) -> None:
    root, commits = history

    (found,) = bisect.culprits(root, [_answer(commits[0], "HEAD")], Judge(commits, commits[2]))

    assert ("dated", commits[2], 0.04) == (found.kind, found.bad, found.delta)
    assert f"sum/one c on NVIDIA H200: first slow: {commits[2]}\n" == telling.answers([found])


def test_the_only_commit_that_can_have_done_it_is_not_measured(history: tuple[Path, list[str]]) -> None:
    root, commits = history
    judge = Judge(commits, commits[3])

    (found,) = bisect.culprits(root, [_answer(commits[2], "HEAD")], judge)

    assert (commits[3], 0.03, 0) == (found.bad, found.delta, judge.asked)


@pytest.mark.parametrize(
    ("good", "bad", "verdict"),
    [("HEAD", "HEAD", "SLOWER"), ("HEAD~6", "HEAD", "SAME"), ("no-such-commit", "HEAD", "SLOWER"), ("", "", "SLOWER")],
)
def test_what_can_not_be_told_is_left_open(good: str, bad: str, verdict: str, history: tuple[Path, list[str]]) -> None:
    root, commits = history

    assert () == bisect.culprits(root, [_answer(good, bad, verdict=verdict)], Judge(commits, commits[1]))


def test_a_night_looks_for_few_and_the_largest_first(history: tuple[Path, list[str]]) -> None:
    root, commits = history
    answers = [_answer(commits[2], "HEAD", delta=delta) for delta in (0.02, 0.05)]

    answers.append(_answer(commits[2], "HEAD", "max/one", delta=0.01))
    (found,) = bisect.culprits(root, answers, Judge(commits, commits[3]), 1)

    assert ("sum/one", 0.05) == (found.kernel, found.delta)


def test_when_the_nights_time_is_up_nothing_more_is_begun(history: tuple[Path, list[str]]) -> None:
    root, commits = history
    judge = Judge(commits, commits[1])

    assert () == remeasure.events([_suspect()], judge, until=0.0)
    assert () == bisect.culprits(root, [_answer(commits[0], "HEAD")], judge, until=0.0)
    assert 0 == judge.asked
