"""The verbs of the night, from the command line."""

import datetime
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from kernelci import history, results
from kernelci.cli import cli
from kernelci.errors import ConfigError
from kernelci.nightly import BRANCH
from kernelci.nightly.branch import Branch
from kernelci.nightly.series import events


def _ran(*arguments: str) -> tuple[object, str]:
    done = CliRunner().invoke(cli, list(arguments), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a commit."""
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["init", "--quiet"], [*settings, "commit", "--quiet", "--allow-empty", "--message", "m"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


def test_append_fetch_and_compact(project: Path, remote: str, reports: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    results.write(reports.all_green(), tmp_path / "report")
    root = ("--root", str(project), "history")

    code, said = _ran(*root, "append", str(tmp_path / "report"), "--history", remote)
    assert (0, True) == (code, said.startswith("pushed nights/2026/11/2026-11-30_"))
    assert 0 == _ran(*root, "fetch", str(tmp_path / "out"), "--history", remote)[0]
    assert 0 == _ran(*root, "compact", "--history", remote)[0]

    assert 1 == len(list((tmp_path / "out").rglob("*.gz")))


def test_suspects_are_listed_for_people_and_programs(measure, tmp_path: Path) -> None:
    made = [measure(night, 1000.0 if night < 40 else 1100.0) for night in range(44)]
    for path, data in (history.night_file([each]) for each in made):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)

    assert "suspected    softmax/a c on NVIDIA H200: +10.0%" in _ran("history", "suspects", str(tmp_path))[1]
    assert ["softmax/a"] == [
        each["kernel"] for each in json.loads(_ran("history", "suspects", str(tmp_path), "--json")[1])["suspects"]
    ]


def test_a_suspicion_that_can_not_be_measured_is_kept_open_on_the_branch(
    project: Path, remote: str, measure, tmp_path: Path
) -> None:
    folder = tmp_path / "history"
    for night in range(44):
        path, data = history.night_file([measure(night, 1000.0 if night < 40 else 1100.0)])
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)

    code, said = _ran(
        "--root", str(project), "history", "remeasure", str(folder), "--gpu", "NVIDIA H200", "--history", remote
    )

    assert (0, True) == (code, "UNKNOWN" in said)
    Branch(remote, BRANCH).write(tmp_path / "out")
    assert 1 == len(list((tmp_path / "out" / "events").rglob("*.jsonl")))


DAY = datetime.date(2026, 2, 10)
ROW = ("softmax/a", "c", "NVIDIA H200")


@pytest.fixture
def known(project: Path, remote: str) -> list[str]:
    """The beginning of `history mark`, where the history knows one change."""
    event = history.Event(DAY, "remeasured", *ROW, DAY, "a" * 40, "b" * 40, "SLOWER", 0.03)
    Branch(remote, BRANCH).add(dict([history.event_file([event])]), "a change")
    return ["--root", str(project), "history", "mark", "--history", remote, "--gpu", "NVIDIA H200", "--reason", "a NaN"]


def _marks(remote: str, into: Path) -> list[tuple[str, str, object]]:
    Branch(remote, BRANCH).write(into)
    return [(each.kind, each.text, each.until) for each in events(into) if each.kind != "remeasured"]


def test_a_change_is_acknowledged_with_a_reason_until_a_day(known: list[str], remote: str, tmp_path: Path) -> None:
    until = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=9)

    code, said = _ran(
        *known, "softmax/a", "--case", "c", "--since", str(DAY), "--as", "acknowledged", "--until", str(until)
    )

    assert (0, True) == (code, said.startswith("marked acknowledged"))
    assert [("acknowledged", "a NaN", until)] == _marks(remote, tmp_path / "out")


@pytest.mark.parametrize(
    ("kernel", "since", "given", "said"),
    [
        ("softmax/b", "2026-02-10", "false", "no change of softmax/b c"),
        ("softmax/a", "2026-01-01", "false", "begin about 2026-01-01"),
        ("softmax/a", "2026-02-10", "false --until 2099-01-01", "--until goes with"),
        ("softmax/a", "2026-02-10", "acknowledged --until 2026-01-01", "is over"),
    ],
)
def test_words_that_nothing_would_read_are_refused(
    kernel: str, since: str, given: str, said: str, known: list[str], remote: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        _ran(*known, kernel, "--case", "c", "--since", since, "--as", *given.split())

    assert [] == _marks(remote, tmp_path / "out")


def test_a_change_that_is_not_known_names_those_that_are(known: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        _ran(*known, "softmax/a", "--case", "typo", "--since", str(DAY), "--as", "environment")

    assert "known: softmax/a c on NVIDIA H200 since 2026-02-10" == error.value.hint


def test_bisect_lists_what_could_have_done_it(project: Path) -> None:
    (project / "kernels" / "sum").mkdir(parents=True)
    (project / "references").mkdir()
    card = '# /// script\n# [tool.kernelci]\n# reference = "sum"\n# backend = "triton"\n# entry = "one"\n# ///\n'
    (project / "kernels" / "sum" / "one.py").write_text(card)
    (project / "references" / "sum.py").write_text("")
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["add", "kernels"], [*settings, "commit", "--quiet", "--message", "m"]):
        subprocess.run(["git", "-C", str(project), *command], check=True)

    code, said = _ran("--root", str(project), "bisect", "sum/one", "--case", "c", "--good", "HEAD~1", "--list")

    assert (0, 1) == (code, len(said.split()))
    with pytest.raises(ConfigError, match="no kernel matches 'sum/two'"):
        _ran("--root", str(project), "bisect", "sum/two", "--case", "c", "--good", "HEAD~1")
