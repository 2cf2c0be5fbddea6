"""What action.yml runs: its inputs, what it uploads, and how it ends."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
import scratch  # beside this file; conftest.py makes it importable

from kernelci import results
from kernelci.errors import ConfigError
from kernelci.hub import action, installing
from kernelci.model import Change, Report

CHANGE = Change("a" * 40, "b" * 40)


def given(**inputs: str) -> action.Inputs:
    return action.read({f"KERNELCI_ACTION_{name.upper()}": value for name, value in inputs.items()})


@pytest.mark.parametrize("text", ['["a/b", "c/d"]', "a/b c/d", " a/b\n  c/d "])
def test_kernels_as_json_or_words(text: str) -> None:
    assert ("a/b", "c/d") == given(kernels=text).kernels


@pytest.mark.parametrize(
    ("name", "value"),
    [("mode", "deploy"), ("kernels", "[1]"), ("kernels", "["), ("expect", "-1"), ("max_dump_mib", "1e9")],
)
def test_a_wrong_input_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"input {name.replace('_', '-')}"):
        given(**{name: value})


def test_a_night_judges_no_change(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="judges no change"):
        action.act(msgspec.structs.replace(given(mode="nightly", base="main"), out=tmp_path))


def test_the_last_attempt_of_each_part_counts(tmp_path: Path) -> None:
    for name in ("kernelci-part-gpu-1-1", "kernelci-part-gpu-1-10", "kernelci-part-gpu-1-2", "kernelci-part-gpu-2-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").touch()
    found = [path.name for path in action.newest_parts(tmp_path)]
    assert ["kernelci-part-gpu-1-10", "kernelci-part-gpu-2-1"] == sorted(found)


def test_the_report_artifact_holds_results_json_alone(tmp_path: Path, reports: ModuleType) -> None:
    inputs = _left(tmp_path, reports)
    assert [] == action.pack(inputs)
    assert ["results.json"] == [path.name for path in (tmp_path / "artifacts" / "report").rglob("*")]
    assert ["dumps/a.ptx", "dumps/b.sass"] == _files(tmp_path / "artifacts" / "dumps")


def test_the_largest_dumps_are_left_out(tmp_path: Path, reports: ModuleType) -> None:
    inputs = msgspec.structs.replace(_left(tmp_path, reports), max_dump_bytes=10)
    assert ["dumps/b.sass"] == action.pack(inputs)
    assert ["dumps/a.ptx"] == _files(tmp_path / "artifacts" / "dumps")


def test_a_part_carries_its_dumps(tmp_path: Path, reports: ModuleType) -> None:
    inputs = msgspec.structs.replace(_left(tmp_path, reports), part="gpu-1", attempt=3)
    action.pack(inputs)
    assert ["dumps/a.ptx", "dumps/b.sass", "results.json"] == _files(tmp_path / "artifacts" / "report")
    found = action.outputs(inputs, 0, reports.all_green())
    assert ("kernelci-part-gpu-1-3", "") == (found["report-artifact"], found["dumps"])


def test_profiles_rooflines_and_traces_go_with_the_dumps(tmp_path: Path, reports: ModuleType) -> None:
    inputs = _left(tmp_path, reports)
    for name in ("profile/k.ncu-rep", "roofline/k.svg", "trace/k.json", "else/secret"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    action.pack(inputs)
    expected = ["dumps/a.ptx", "dumps/b.sass", "profile/k.ncu-rep", "roofline/k.svg", "trace/k.json"]
    assert expected == _files(tmp_path / "artifacts" / "dumps")


def test_no_link_is_uploaded(tmp_path: Path, reports: ModuleType) -> None:
    inputs = _left(tmp_path, reports)
    (tmp_path / "dumps" / "link").symlink_to("/etc/passwd")
    action.pack(inputs)
    assert ["dumps/a.ptx", "dumps/b.sass"] == _files(tmp_path / "artifacts" / "dumps")


def _left(out: Path, reports: ModuleType) -> action.Inputs:
    """What a run left."""
    results.write(reports.all_green(), out)
    scratch.write(out, {"dumps/a.ptx": "small", "dumps/b.sass": "x" * 1000})
    return msgspec.structs.replace(given(), out=out)


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("expected", "change", "kernels"),
    [
        (0, None, True),
        (0, CHANGE, True),
        (3, msgspec.structs.replace(CHANGE, incomplete="no GPU yet"), True),
        (0, CHANGE, False),
        (3, msgspec.structs.replace(CHANGE, removed=("a/b",)), False),
        (3, None, False),
    ],
)
def test_exit_codes(reports: ModuleType, expected: int, change: Change | None, kernels: bool) -> None:
    report: Report = msgspec.structs.replace(reports.all_green(), change=change)
    if not kernels:
        report = msgspec.structs.replace(report, kernels=())
    assert expected == action.exit_code(report)


def test_a_failing_kernel_stays_failing_where_something_waits(reports: ModuleType) -> None:
    change = msgspec.structs.replace(CHANGE, incomplete="no GPU yet")
    assert 1 == action.exit_code(msgspec.structs.replace(reports.one_wrong(), change=change))


def test_commands_are_stopped_while_the_ladder_prints(capfd: pytest.CaptureFixture[str]) -> None:
    with action.silenced():
        print("::add-path::/evil")
    lines = capfd.readouterr().out.splitlines()
    word = re.fullmatch(r"::stop-commands::([0-9a-f]{32})", lines[0])
    assert word is not None
    assert ["::add-path::/evil", "", f"::{word[1]}::"] == lines[1:]


def test_what_can_not_be_judged_is_an_output_too(tmp_path: Path) -> None:
    output, summary = tmp_path / "output", tmp_path / "summary"
    environ = {
        **os.environ, "KERNELCI_ACTION_ROOT": str(tmp_path), "KERNELCI_ACTION_BASE": "main",
        "RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "kernelci.hub.action"], env=environ, capture_output=True, text=True, check=False
    )
    assert (0, True) == (done.returncode, "::error title=kernelci::git" in done.stdout), done.stderr
    assert ["exit-code=2", "outcome=BROKEN", "report="] == output.read_text().splitlines()[:3]


def test_an_environment_is_used_again_until_something_changes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    scratch.write(source, {"pyproject.toml": "a", "kernelci/x.py": "a", "README.md": "a"})
    first = installing.key(source, "all", [])
    scratch.write(source, {"README.md": "b", "kernelci/x.pyc": "b"})
    assert first == installing.key(source, "all", [])
    others = {installing.key(source, "github", []), installing.key(source, "all", ["--pre"])}
    scratch.write(source, {"kernelci/x.py": "b"})
    assert 4 == len({first, *others, installing.key(source, "all", [])})


def test_a_half_made_environment_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch.write(tmp_path, {"source/pyproject.toml": "nonsense"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(installing, "_by_pip_inside", installing._by_own_pip)  # the usual way takes seconds to fail
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError):
            installing.install(tmp_path / "source", tmp_path / "venvs", "", [])
