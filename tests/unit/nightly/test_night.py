"""A night's report goes onto the branch."""

import datetime
import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from kernelci import results
from kernelci.errors import ConfigError, HubError, ReportError
from kernelci.model import Change, Finding
from kernelci.nightly import BRANCH, night, telling
from kernelci.nightly.branch import Branch
from kernelci.nightly.series import load

ROOT = Path(__file__).resolve().parents[3]


def _report(reports: ModuleType, folder: Path, **more: object) -> Path:
    folder.mkdir(parents=True)
    results.write(reports.report((reports.green("softmax/triton"),), **more), folder)
    return folder


def test_a_report_is_pushed_and_kept_below_its_folder(reports: ModuleType, remote: str, tmp_path: Path) -> None:
    folder = _report(reports, tmp_path / "report")

    (path,) = night.append([folder], night.Night(Branch(remote, BRANCH)))

    Branch(remote, BRANCH).write(tmp_path / "out")
    assert (folder / night.PENDING / path).read_bytes() == (tmp_path / "out" / path).read_bytes()


def test_the_same_report_twice_is_there_once(reports: ModuleType, remote: str, tmp_path: Path) -> None:
    folder = _report(reports, tmp_path / "report")
    where = night.Night(Branch(remote, BRANCH))

    assert night.append([folder], where) == night.append([folder], where)

    Branch(remote, BRANCH).write(tmp_path / "out")
    assert 1 == len([path for path in (tmp_path / "out").rglob("*") if path.is_file()])


def test_a_branch_that_is_away_loses_nothing(
    reports: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _report(reports, tmp_path / "report")
    monkeypatch.setattr("kernelci.nightly.branch.ATTEMPTS", 1)

    with pytest.raises(HubError) as error:
        night.append([folder], night.Night(Branch(str(tmp_path / "nowhere"), BRANCH)))

    assert "history append" in error.value.hint
    assert 1 == len(list((folder / night.PENDING).rglob("*.gz")))


def _night_of(reports: ModuleType, folder: Path, started: str) -> Path:
    _report(reports, folder)
    results.write(msgspec.structs.replace(results.read(folder), started_at=started), folder)
    return folder


def test_nights_that_append_at_once_are_each_there_once(reports: ModuleType, remote: str, tmp_path: Path) -> None:
    """Two machines with a night each, and one of them twice, as a job that is run again does."""
    first, second = (_night_of(reports, tmp_path / f"{day}", f"2026-11-{day}T02:00:00+00:00") for day in (28, 29))
    start = threading.Barrier(3)

    def append(folder: Path) -> None:
        start.wait()
        night.append([folder], night.Night(Branch(remote, BRANCH, backoff_s=0.01)))

    threads = [threading.Thread(target=append, args=(folder,)) for folder in (first, second, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    Branch(remote, BRANCH).write(tmp_path / "out")
    assert ["2026-11-28", "2026-11-29"] == sorted(path.name[:10] for path in (tmp_path / "out").rglob("*.gz"))


def test_a_night_on_a_gpu_needs_no_excuse(reports: ModuleType) -> None:
    assert "" == telling.untimed(reports.all_green())


def test_a_night_that_fails_is_a_capsule(reports: ModuleType, remote: str, tmp_path: Path) -> None:
    """What it takes to try it again: seed, command, versions, driver, GPU, clocks, source, commit, run."""
    folder = tmp_path / "report"
    folder.mkdir()
    finding = Finding("wrong", "m", reproduce="kernelci run softmax/triton --case c --seed 7242ca271005a510")
    stopped = reports.kernel("softmax/triton", reports.compiled("sm_90a"), reports.stop("correctness", finding))
    where = msgspec.structs.replace(
        reports.H200, gpu_uuid="GPU-1", cuda="13.0", clocks="max 1980 MHz", power_limit_w=700.0
    )
    results.write(reports.report((stopped,), where), folder)

    night.append([folder], night.Night(None, "c" * 40, "https://github.com/o/r/actions/runs/7"))

    kept = results.read(folder)
    assert kept.seed in kept.kernels[0].rungs[-1].finding.reproduce
    (record, *_) = [
        json.loads(line)
        for path in (folder / night.PENDING).rglob("*.gz")
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    names = ("gpu_uuid", "driver", "cuda", "dsl", "clocks", "source", "commit", "run", "reason")
    assert [] == [name for name in names if not record.get(name)]


def test_a_pull_requests_report_is_refused(reports: ModuleType, tmp_path: Path) -> None:
    folder = _report(reports, tmp_path / "report", change=Change("a" * 40, "b" * 40))

    with pytest.raises(ReportError, match="trusted"):
        night.append([folder], night.Night(None))


def test_a_night_is_the_day_on_which_it_began_by_utc() -> None:
    assert datetime.date(2026, 11, 29) == night._date("2026-11-30T01:00:00+02:00")
    with pytest.raises(ReportError):
        night._date("soon")


def test_the_run_is_named_where_there_is_one() -> None:
    found = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7"}

    assert ("https://github.com/o/r/actions/runs/7", "") == (night.run_url(found), night.run_url({}))


def test_a_checkout_without_an_origin_asks_for_the_historys_place(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)

    with pytest.raises(ConfigError, match="origin"):
        night._origin(tmp_path)


def _project(folder: Path) -> Path:
    (folder / "references").mkdir(parents=True)
    (folder / "kernels" / "softmax").mkdir(parents=True)
    for name in ("references/softmax.py", "kernels/softmax/triton.py"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["init", "--quiet"], ["add", "--all"], [*settings, "commit", "--quiet", "--message", "m"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    return folder


@pytest.mark.slow
def test_nightly_climbs_and_remembers(remote: str, tmp_path: Path) -> None:
    project = _project(tmp_path / "project")
    command = [sys.executable, "-m", "kernelci", "--root", str(project), "nightly", "--rungs", "compile"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [*command, "--history", remote, "--out", str(tmp_path / "report")],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.startswith("pushed nights/"), done.stderr[-3000:]
    assert "no GPU on this machine: the night has no times" in done.stdout
    assert {("softmax/triton", f"no GPU: {target}") for target in ("sm_80", "sm_90a", "sm_100a")} == _remembered(
        remote, tmp_path
    )


def _remembered(remote: str, tmp_path: Path) -> set[tuple[str, str]]:
    """The kernels that a history speaks of, and where they were measured."""
    Branch(remote, BRANCH).write(tmp_path / "out")
    return {(series.kernel, series.gpu) for series in load(tmp_path / "out")}
