"""W1, played by act on a pull request: a real ladder on this machine, and the artifacts that W2 takes."""

import json
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import acting  # beside this file; conftest.py makes it importable
import pytest

from kernelci.workbench import sandbox

TRACE = "open({trace!r}, 'a').write(__file__)\nraise SystemExit(99)\n"
pytestmark = [pytest.mark.slow, acting.needs_act]


def _kernel(folder: Path, name: str, old: str = "", new: str = "") -> None:
    text = (folder / "kernels" / "softmax" / "triton.py").read_text()
    assert old in text
    (folder / "kernels" / "softmax" / f"{name}.py").write_text(text.replace(old, new))


def _report(played: acting.Played) -> Any:
    with zipfile.ZipFile(played.archive("kernelci-report-1")) as archive:
        assert ["results.json"] == archive.namelist()
        return json.loads(archive.read("results.json"))


def _outcomes(report: Any, kernel: str) -> dict[str, str]:
    return {
        rung["rung"]: rung["outcome"] for each in report["kernels"] if each["name"] == kernel for rung in each["rungs"]
    }


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[acting.Played, dict[str, Any], Path]:
    """A pull request with one good kernel, and everything else in it hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    trace = folder / "trace"
    repository = acting.repository(folder / "repository")
    acting.git(repository, "checkout", "--quiet", "-b", "change")
    _kernel(repository, "mine")
    code = TRACE.format(trace=str(trace))
    for name in (
        "references/softmax.py", "references/new.py", "rungs/extra.py", "conftest.py", "setup.py", "sitecustomize.py",
        "torch.py", "kernels/other/_helper.py", "kernelci/cli.py", "kernelci/__init__.py",
        "kernelci/hub/action.py", "kernelci/hub/installing.py", "report_templates/summary.md.j2",
    ):  # fmt: skip
        (repository / name).parent.mkdir(exist_ok=True, parents=True)
        (repository / name).write_text(code)
    (repository / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'
    )
    (repository / "action.yml").write_text(
        "name: x\ndescription: x\nruns:\n  using: composite\n  steps:\n    - run: touch "
        + str(trace)
        + "\n      shell: bash\n"
    )
    acting.commit(repository, "change")
    event = acting.pull_request(repository)
    return acting.play(repository, event, folder / "play", KERNELCI_SEEDS="1"), event, trace


def test_a_real_ladder_judges_the_kernel(hostile: tuple[acting.Played, dict[str, Any], Path]) -> None:
    played, _, _ = hostile
    assert "PASSED" == _outcomes(_report(played), "softmax/mine").get("correctness"), played.log[-8000:]


def test_nothing_hostile_runs(hostile: tuple[acting.Played, dict[str, Any], Path]) -> None:
    played, _, trace = hostile
    assert "PASSED" == _outcomes(_report(played), "softmax/mine").get("correctness"), played.log[-8000:]
    assert not trace.exists()


def test_the_report_names_the_judges_files(hostile: tuple[acting.Played, dict[str, Any], Path]) -> None:
    played, event, _ = hostile
    change = _report(played)["change"]
    assert [event["pull_request"][side]["sha"] for side in ("base", "head")] == [change["base"], change["head"]]
    found = {each["path"]: each["role"] for each in change["judge"]}
    expected = {
        "references/softmax.py": "reference", "rungs/extra.py": "rung", "pyproject.toml": "configuration",
        "conftest.py": "packaging", "kernelci/cli.py": "kernelci", "action.yml": "workflow",
        "report_templates/summary.md.j2": "template",
    }  # fmt: skip
    assert expected == {path: role for path, role in found.items() if path in expected}


def test_a_stranger_spends_no_gpu_time(tmp_path: Path) -> None:
    repository = acting.repository(tmp_path / "repository")
    acting.git(repository, "checkout", "--quiet", "-b", "change")
    _kernel(repository, "mine")
    acting.commit(repository, "change")
    played = acting.play(repository, acting.pull_request(repository, "NONE"), tmp_path / "play")
    report = _report(played)
    assert (True, False, True) == tuple(played.ran(job) for job in ("compile", "gpu", "report"))
    assert ("PASSED", "SKIPPED") == tuple(_outcomes(report, "softmax/mine")[rung] for rung in ("compile", "run"))
    assert "label" in report["change"]["incomplete"]
    assert 0 != played.code


def test_a_wrong_kernel_is_annotated_at_its_line(tmp_path: Path) -> None:
    repository = acting.repository(tmp_path / "repository")
    acting.git(repository, "checkout", "--quiet", "-b", "change")
    _kernel(repository, "mine", "def softmax(", "def softmax_(")
    acting.commit(repository, "change")
    label = {"action": "labeled", "label": {"name": "kernelci:gpu"}}
    played = acting.play(repository, acting.pull_request(repository, "NONE", **label), tmp_path / "play")
    assert "kernels/softmax/mine.py" in played.log
    assert "FAILED" == _outcomes(_report(played), "softmax/mine")["precheck"]
    assert 0 != played.code


def _labelled(folder: Path, standin: ModuleType, who: str) -> tuple[acting.Played, Path]:
    """W1 after somebody set the label on a change whose own rung is hostile, and which touches no kernel."""
    trace = folder / "trace"
    repository = acting.repository(folder / "repository")
    acting.git(repository, "checkout", "--quiet", "-b", "change")
    (repository / "rungs").mkdir()
    (repository / "rungs" / "own.py").write_text(
        f"import os, sys\nprint('heard', file=sys.stderr, flush=True)\nopen({str(trace)!r}, 'a')\nos._exit(0)\n"
    )
    head = acting.commit(repository, "change")
    hub = standin.GitHub()
    hub.permissions["ada"] = "maintain"
    server = standin.serve(hub)
    label = {"action": "labeled", "label": {"name": "kernelci:judge"}, "sender": {"login": who}}
    event = acting.pull_request(repository, "NONE", **label)
    assert head == event["pull_request"]["head"]["sha"]
    try:
        return acting.play(repository, event, folder / "play", STANDIN_API=hub.url), trace
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(not sandbox.level().sandboxed, reason="no sandbox here")
def test_an_owners_label_has_the_changes_own_judge_heard_in_a_sandbox(tmp_path: Path, standin: ModuleType) -> None:
    played, trace = _labelled(tmp_path, standin, "ada")
    second = _report(played)["second"]
    assert (True, False, True) == tuple(played.ran(job) for job in ("second", "gpu", "report")), played.log[-8000:]
    assert ("ada", "it left no report") == (second["by"], second["why"])
    assert "heard" == second["log"]
    assert not trace.exists()


def test_a_spent_budget_reaches_no_gpu(standin: ModuleType, tmp_path: Path) -> None:
    """The base grants one run, and GitHub knows of one; that the change grants itself more is no use."""
    repository = acting.repository(tmp_path / "repository")
    (repository / "kernelci.toml").write_text("[budget]\nruns = 1\n")
    acting.commit(repository, "one run")
    acting.git(repository, "checkout", "--quiet", "-b", "change")
    (repository / "kernelci.toml").write_text("[budget]\nruns = 1000\n")
    _kernel(repository, "mine")
    head = acting.commit(repository, "change")
    event = acting.pull_request(repository)
    hub = standin.GitHub()
    hub.open_pull(head, [], branch="change")
    run = hub.start_run(head, branch="change")["workflow_run"]["id"]
    hub.jobs[run] = [{"name": "kernels / gpu (0)", "status": "completed", "conclusion": "success"}]
    shown = hub.shown_pull(7, "pull_full")
    event["pull_request"] = shown | event["pull_request"]
    for side in ("head", "base"):
        event["pull_request"][side]["repo"] = shown[side]["repo"]
    server = standin.serve(hub)

    played = acting.play(repository, event, tmp_path / "play", STANDIN_API=hub.url)

    server.shutdown()
    server.server_close()
    assert (True, False, True) == tuple(played.ran(job) for job in ("compile", "gpu", "report")), played.log[-6000:]
    assert "0 of 1 runs are left" in _report(played)["change"]["incomplete"]
    assert 0 != played.code
