"""The newest report of a pull request's earlier runs, by which the next run is planned."""

from typing import Any

import msgspec
import pytest

from kernelci.hub import earlier, plan
from kernelci.hub.client import Patience

QUICK = Patience(attempts=2, backoff_s=0.01, pace_s=0)


@pytest.fixture
def found(github: Any, standin: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is found of pull request 7."""
    github.open_pull(standin.SHA, standin.KERNELS)
    monkeypatch.setenv("GITHUB_TOKEN", github.token)
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.delenv("GITHUB_EVENT_PATH", raising=False)
    return lambda: earlier.report(standin.REPOSITORY, 7, QUICK)


def test_none_yet(found: Any) -> None:
    assert found() is None


def test_the_newest_that_can_be_read(found: Any, run_of: Any, reports: Any, github: Any, standin: Any) -> None:
    run_of(reports.one_wrong())
    run_of(reports.all_green())
    run_of(b"nonsense")
    github.start_run(standin.SHA)
    under_way = github.start_run(standin.SHA)["workflow_run"]["id"]
    github.runs[under_way]["status"] = "in_progress"

    assert reports.all_green() == found()


def test_those_of_others_are_not_looked_at(found: Any, run_of: Any, reports: Any) -> None:
    run_of(reports.all_green(), head="stranger/kernels")

    assert found() is None


def test_durations_are_bounded(reports: Any) -> None:
    kernel = reports.green("softmax/triton")
    rungs = [msgspec.structs.replace(rung, duration_s=1.7e308) for rung in kernel.rungs]
    long = msgspec.structs.replace(kernel, rungs=tuple(rungs))
    short = msgspec.structs.replace(
        kernel, name="softmax/cuda", rungs=(reports.RungResult("precheck", reports.P, -9.0),)
    )

    assert {"softmax/triton": plan.DAY_S, "softmax/cuda": 0.0} == plan.durations(reports.report((long, short)))
