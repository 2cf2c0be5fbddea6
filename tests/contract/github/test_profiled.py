"""What `/kernelci profile` is answered with once its run is through."""

import json
from pathlib import Path
from typing import Any

import pytest

from kernelci import results
from kernelci.errors import EventError, Superseded
from kernelci.hub import profiled
from kernelci.hub.client import Patience
from kernelci.hub.limits import COMMENT_CHARACTERS
from kernelci.model import Change, Finding, Metric, Report, Row, RungResult, Unit
from kernelci.reasons import Outcome

QUICK = Patience(attempts=2, backoff_s=0.01, longest_s=0.01, pace_s=0)
BASE = "b" * 40
HOSTILE = "@all fixes #1 <img src=x> ![x](http://e.org/i) | `x` <!-- kernelci:data -->\x1b[31m"


def metrics(tag: str, head: float, base: float, unit: Unit) -> tuple[Metric, ...]:
    """A figure of head and of base."""
    return Metric(tag, head, unit, tag.replace("_", " ")), Metric(f"{tag}_base", base, unit, f"{tag}, base")


@pytest.fixture
def seen(reports: Any, standin: Any) -> Report:
    """A report with a profile of one kernel, and one that was not looked into."""
    figures = metrics("profile_time", 4.2e4, 3.1e4, Unit.NANOSECONDS) + metrics("occupancy", 0.25, 0.5, Unit.FRACTION)
    notes = ("explains: half the warps wait for memory", "finding: use wider loads (expected gain 12 %)")
    row = Row(Outcome.PASSED, "8192x8192-bf16", metrics=figures, notes=notes)
    kernel = reports.kernel(
        "softmax/triton", reports.checked(), RungResult("profile", Outcome.PASSED, 9.0, rows=(row,))
    )
    other = reports.kernel("softmax/cuda", reports.checked(), reports.skip("profile", "no-profiler", "no ncu here"))
    return reports.report((kernel, other), change=Change(BASE, standin.SHA))


@pytest.fixture
def asked(github: Any, standin: Any) -> Any:
    """A pull request, and the run of profile.yml on the base's branch."""
    github.open_pull(standin.SHA, standin.KERNELS)
    return github.start_run(BASE, branch="main")["workflow_run"]["id"]


@pytest.fixture
def told(github: Any, standin: Any, asked: int, tmp_path: Path) -> Any:
    """Run the answering job; what it said."""

    def tell(report: Report | None, sha: str = standin.SHA, attempt: str = "1", **more: str) -> str:
        if report is not None:
            archive = standin.zipped({"results.json": results.encode(report)})
            github.upload(asked, f"kernelci-report-{attempt}", archive)
            github.upload(asked, f"kernelci-dumps-{attempt}", standin.zipped({"profile/k.ncu-rep": b"x"}))
        inputs = {"pull": "7", "sha": sha, "profile": "changed", **more}
        path = tmp_path / "dispatch.json"
        path.write_text(json.dumps({"inputs": inputs, "repository": {"full_name": standin.REPOSITORY}}))
        environ = {"GITHUB_EVENT_PATH": str(path), "GITHUB_TOKEN": github.token, "GITHUB_API_URL": github.url}
        environ |= {"GITHUB_RUN_ID": str(asked), "GITHUB_RUN_ATTEMPT": attempt}
        return str(profiled.tell(environ, patience=QUICK))

    return tell


def test_what_was_seen(told: Any, seen: Report, github: Any, golden: Any) -> None:
    told(seen)

    golden("comments/profiled.md", github.comments[0]["body"].replace(str(next(iter(github.runs))), "4711"))


def test_each_attempt_is_answered_once(told: Any, seen: Report, github: Any) -> None:
    told(seen)
    assert "answered before" == told(None)
    told(seen, attempt="2")

    assert 2 == len(github.comments)


def test_a_run_without_a_report(told: Any, github: Any) -> None:
    told(None)

    assert "No report: run " in github.comments[0]["body"]


def test_a_report_on_another_commit_is_refused(told: Any, seen: Report) -> None:
    assert "No report: it judges" in told(seen, sha="c" * 40)


def test_a_pull_request_that_moved_on(told: Any, seen: Report, github: Any) -> None:
    github.pulls[7]["head"]["sha"] = "c" * 40

    assert "has moved on since" in told(seen)


def test_a_closed_pull_request(told: Any, seen: Report, github: Any) -> None:
    github.pulls[7]["state"] = "closed"

    with pytest.raises(Superseded):
        told(seen)
    assert [] == github.comments


@pytest.mark.parametrize("more", [{"pull": "x"}, {"pull": "7; rm"}, {"sha": "main"}, {"sha": "a" * 41}])
def test_inputs_of_another_form(more: dict[str, str], told: Any) -> None:
    with pytest.raises(EventError):
        told(None, **more)


def test_what_a_kernel_says_is_harmless(told: Any, seen: Report, reports: Any, standin: Any) -> None:
    row = Row(Outcome.PASSED, HOSTILE, notes=(HOSTILE,) * 3)
    bad = Row(Outcome.FAILED, "c", finding=Finding("wrong", HOSTILE))
    rungs = (
        RungResult("profile", Outcome.PASSED, 1.0, rows=(row,)),
        RungResult("profile", Outcome.FAILED, 1.0, Finding("wrong", HOSTILE), rows=(bad,)),
    )
    kernels = tuple(reports.kernel(f"softmax/{index}", rung) for index, rung in enumerate(rungs))

    text = told(reports.report(kernels, change=Change(BASE, standin.SHA)), profile=HOSTILE)

    assert not any(part in text for part in ("@all", "#1 ", "<img", "](http:", "<!--", "\x1b", "`x`"))


def test_a_page_that_is_too_long_says_what_is_missing(told: Any, reports: Any, standin: Any, github: Any) -> None:
    rows = tuple(Row(Outcome.PASSED, f"{index}", notes=("long " * 70,) * 10) for index in range(20))
    kernels = tuple(
        reports.kernel(f"softmax/{index}", RungResult("profile", Outcome.PASSED, 1.0, rows=rows)) for index in range(9)
    )

    told(reports.report(kernels, change=Change(BASE, standin.SHA)))

    body = github.comments[0]["body"]
    assert (True, True) == (len(body) <= COMMENT_CHARACTERS, "Left out for length" in body)
