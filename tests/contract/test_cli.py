"""What a user gets for bad input: one clear message, the right exit code, no traceback, nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CARD = """\
# /// script
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# ///
"""
KERNEL = CARD + "def softmax(x, y):\n    pass\n"


def _kernelci(*arguments: str, root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernelci", "--root", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one reference and one kernel that does nothing."""
    (tmp_path / "references").mkdir()
    shutil.copy(REPOSITORY / "references" / "softmax.py", tmp_path / "references")
    folder = tmp_path / "kernels" / "softmax"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(KERNEL)
    return tmp_path


def _says(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    text = done.stdout + done.stderr
    assert (code, False) == (done.returncode, "Traceback" in text), text
    assert all(word in text for word in words), text


def test_a_kernel_without_a_card(project: Path) -> None:
    (project / "kernels" / "softmax" / "mine.py").write_text("x = 1\n")
    _says(_kernelci("list", root=project), 2, "kernels/softmax/mine.py: no card")


def test_two_cards(project: Path) -> None:
    (project / "kernels" / "softmax" / "mine.py").write_text(CARD + "\n" + KERNEL)
    _says(_kernelci("list", root=project), 2, "two cards")


def test_a_broken_card_fails_its_kernel_only(project: Path) -> None:
    (project / "kernels" / "softmax" / "mine.py").write_text(KERNEL.replace("entry =", "entri ="))
    done = _kernelci("run", "--rungs", "precheck", "--out", str(project / "out"), root=project)
    _says(done, 1, "unknown field `entri`")


def test_two_kernels_of_one_name(project: Path) -> None:
    shutil.copytree(project / "kernels" / "softmax", project / "kernels" / "again")
    _says(_kernelci("run", root=project), 2, "error[duplicate-name]", "kernels/again/mine.py")


def test_an_unknown_kernel(project: Path) -> None:
    _says(_kernelci("run", "softmax/yours", root=project), 2, "no kernel matches 'softmax/yours'", "softmax/mine")


@pytest.mark.parametrize("asked", ["corectness", ","])
def test_an_unknown_rung(project: Path, asked: str) -> None:
    _says(_kernelci("run", "--rungs", asked, root=project), 2, f"no rung '{asked.strip(',')}'", "correctness")


def test_a_reference_that_raises_is_broken_not_the_kernels_fault(project: Path) -> None:
    (project / "references" / "softmax.py").write_text("raise OSError('gone')\n")
    done = _kernelci("run", "--rungs", "precheck", "--out", str(project / "out"), root=project)
    _says(done, 4, "BROKEN", "OSError: gone")


def test_an_output_folder_that_can_not_be_written(project: Path) -> None:
    (project / "file").write_text("")
    done = _kernelci("run", "--out", str(project / "file" / "out"), root=project)
    _says(done, 2, "error[output-folder]", "--out")


def test_a_report_that_can_not_be_written(project: Path) -> None:
    _kernelci("run", "--rungs", "precheck", "--out", str(project / "out"), root=project)
    done = _kernelci("report", str(project / "out"), "--output", str(project / "no" / "x.txt"), root=project)
    _says(done, 2, "error[output-folder]", "--output")


def test_no_project(tmp_path: Path) -> None:
    _says(_kernelci("run", root=tmp_path), 2, "error[no-kernels]", "kernelci init")


def test_a_wrong_option(project: Path) -> None:
    (project / "kernelci.toml").write_text("seeds = 'many'\n")
    _says(_kernelci("run", root=project), 2, "kernelci.toml", "seeds")


def test_nothing_to_do_is_never_green(project: Path) -> None:
    (project / "kernels" / "softmax" / "mine.py").write_text(
        KERNEL.replace("# [tool", '# dependencies = ["no-such-distribution"]\n# [tool')
    )
    done = _kernelci("run", "--out", str(project / "out"), root=project)
    _says(done, 3, "no-such-distribution is")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema_version": 999}', "schema version 999"),
        ('{"schema_version": 1, "kernels": [', "is the file complete"),
        ('{"schema_version": 1, "schema_version": 1}', "a key occurs twice"),
        ('{"schema_version": 1, "duration_s": Infinity}', "Infinity"),
        ("[" * 100_000, "nested deeper"),
    ],
)
def test_a_results_file_that_can_not_be_taken(project: Path, text: str, said: str) -> None:
    path = project / "results.json"
    path.write_text(text)
    _says(_kernelci("report", str(path), root=project), 2, "error[report]", said)


def test_200_megabytes_of_nesting(project: Path) -> None:
    path = project / "results.json"
    path.write_bytes(b"[" * 200_000_000)
    _says(_kernelci("report", str(path), root=project), 2, "larger than 64 MiB")


def test_an_unknown_format(project: Path) -> None:
    done = _kernelci("run", "--rungs", "precheck", "--out", str(project / "out"), root=project)
    assert 0 == done.returncode, done.stdout + done.stderr
    _says(_kernelci("report", str(project / "out"), "--format", "pdf", root=project), 2, "pdf", "markdown")


def test_explain_knows_every_code_and_near_misses(project: Path) -> None:
    _says(_kernelci("explain", "unwriten", root=project), 2, "did you mean unwritten")


def test_json_is_the_report_alone(project: Path) -> None:
    done = _kernelci("run", "--rungs", "precheck", "--json", "--out", str(project / "out"), root=project)
    assert json.loads(done.stdout) == json.loads((project / "out" / "results.json").read_text())


def test_list_as_json(project: Path) -> None:
    (record,) = json.loads(_kernelci("list", "--json", root=project).stdout)
    assert ("softmax/mine", "triton", "") == (record["name"], record["backend"], record["error"])


def _committed(project: Path) -> Path:
    """The project as a repository with one commit."""
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "m")):
        subprocess.run(["git", *settings, "-C", str(project), *command], check=True)
    return project


def _against(ref: str, root: Path, *more: str) -> subprocess.CompletedProcess[str]:
    out = root.parent / f"{root.name}-out"
    return _kernelci("run", "--rungs", "precheck", "--base", ref, "--out", str(out), *more, root=root)


def test_a_base_that_does_not_exist(project: Path) -> None:
    _says(_against("nowhere", _committed(project)), 2, "error[base]", "no commit 'nowhere'", "git fetch")


def test_a_base_outside_of_a_repository(project: Path) -> None:
    _says(_against("main", project), 2, "error[base]", "not a git repository")


def test_a_base_without_the_kernel(project: Path) -> None:
    _committed(project)
    (project / "kernels" / "softmax" / "mine.py").rename(project / "kernels" / "softmax" / "yours.py")
    done = _against("HEAD", project, "--json")
    report = json.loads(done.stdout)
    assert (0, ["softmax/mine"]) == (done.returncode, report["change"]["removed"])
    assert "not in HEAD, and measured alone: softmax/yours" in report["notes"]


def test_the_working_tree_is_the_head_as_it_is(project: Path) -> None:
    _committed(project)
    (project / "kernels" / "softmax" / "mine.py").write_text(KERNEL.replace("def softmax", "def other"))
    _says(_against("HEAD", project), 1, "softmax", "not committed, and judged as it is: kernels/softmax/mine.py")


WAITS = """
import time
from kernelci.rungs import Findings, rung
@rung("waits", after=("precheck",))
def waits(referee):
    (referee.out / "begun").touch()
    while not (referee.out / "stop").exists():
        time.sleep(0.02)
    return Findings()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_of_the_base(
    project: Path, tmp_path_factory: pytest.TempPathFactory, how: signal.Signals
) -> None:
    (project / "rungs").mkdir()
    (project / "rungs" / "waits.py").write_text(WAITS)
    _committed(project)
    out, temporary = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("tmp")
    command = [sys.executable, "-m", "kernelci", "--root", str(project), "run", "--rungs", "waits"]
    command += ["--base", "HEAD", "--out", str(out)]
    started = subprocess.Popen(command, env=os.environ | {"TMPDIR": str(temporary)})
    try:
        _wait_until((out / "begun").exists)
        assert 1 == len(list(temporary.glob("kernelci-base-*")))
        started.send_signal(how)
        _wait_until(lambda: not list(temporary.glob("kernelci-base-*")))
    finally:
        (out / "stop").touch()
        assert 0 != started.wait(60)
    assert ["interrupted: 1 of 1 kernels did not finish"] == json.loads((out / "results.json").read_text())["notes"]
    assert not (project / ".git" / "worktrees").exists()


def _wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("gpus", ["0", "none", "-1"])
def test_gpus_that_name_none(project: Path, gpus: str) -> None:
    _says(_kernelci("run", f"--gpus={gpus}", root=project), 2, "command line", "gpus")


def test_a_folder_as_base_that_does_not_exist(project: Path) -> None:
    done = _kernelci("run", "--base-folder", str(project / "nowhere"), root=project)
    _says(done, 2, "error[base]", "no folder")
