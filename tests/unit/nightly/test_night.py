"""A night's report goes onto the branch."""

import datetime
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kernelci import results
from kernelci.errors import ConfigError, HubError, ReportError
from kernelci.model import Change
from kernelci.nightly import BRANCH, night
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
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "KERNELCI_TARGETS": "sm_90a"}

    done = subprocess.run(
        [*command, "--history", remote, "--out", str(tmp_path / "report")],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.startswith("pushed nights/"), done.stderr[-3000:]
    assert tuple(_remembered(remote, tmp_path)) == ("softmax/triton",)


def _remembered(remote: str, tmp_path: Path) -> list[str]:
    """The kernels that a history speaks of; without a GPU none has a series."""
    import gzip
    import json

    Branch(remote, BRANCH).write(tmp_path / "out")
    assert () == load(tmp_path / "out")
    return [
        json.loads(line)["kernel"]
        for path in (tmp_path / "out").rglob("*.gz")
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
