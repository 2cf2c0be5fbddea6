"""`watch` on a real kernel that is edited: each save gets its answer, from the same warm processes."""

import re
import shutil
from pathlib import Path

import pytest

from kernelci import watching
from kernelci.errors import ConfigError
from kernelci.model import KernelReport
from kernelci.reasons import Outcome

ROOT = Path(__file__).resolve().parents[2]
EDITS = {
    "syntax": ("BLOCK: tl.constexpr):", "BLOCK: tl.constexpr:"),
    "constant": ('tl.where(first + row < rows, float("-inf"), 0.0)', "tl.where(first + row < rows, 0.0, 0.0)"),
}


def _project(root: Path) -> Path:
    """A project with the softmax reference and its Triton kernel; the kernel's file."""
    for name in ("references/softmax.py", "kernels/softmax/triton.py"):
        (root / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, root / name)
    return root / "kernels" / "softmax" / "triton.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the project of `answers` lies."""
    return tmp_path_factory.mktemp("watched")


@pytest.fixture(scope="module")
def answers(root: Path) -> dict[str, KernelReport]:
    """The answers to the kernel as it is, to each edit, to a broken card, and to the kernel as it was."""
    path = _project(root)
    text = path.read_text(encoding="utf-8")
    saves = {name: text.replace(*edit) for name, edit in EDITS.items()}
    saves |= {"card": text.replace("backend = ", "back_end = "), "fixed": text}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELCI_CACHE", str(root / "cache"))
        watched = watching.answers(root, "softmax/triton")
        given = {"first": next(watched)[0]}
        for name, saved in saves.items():
            path.write_text(saved, encoding="utf-8")
            given[name] = next(watched)[0]
        watched.close()
    return given


@pytest.mark.parametrize("save", ["first", "fixed"])
def test_a_right_kernel_passes_up_to_correctness(answers: dict[str, KernelReport], save: str) -> None:
    outcomes = {rung.rung: rung.outcome for rung in answers[save].rungs}

    assert dict.fromkeys(watching.RUNGS, Outcome.PASSED) == {rung: outcomes[rung] for rung in watching.RUNGS}


def _stop(report: KernelReport) -> tuple[str, Outcome, str]:
    assert report.stopped_at is not None
    assert report.stopped_at.finding is not None
    return report.stopped_at.rung, report.stopped_at.outcome, report.stopped_at.finding.reason


@pytest.mark.parametrize(
    ("save", "rung", "reason"),
    [("syntax", "precheck", "syntax"), ("constant", "correctness", "wrong"), ("card", "precheck", "card")],
)
def test_an_edit_is_answered_with_its_reason(
    answers: dict[str, KernelReport], save: str, rung: str, reason: str
) -> None:
    assert (rung, Outcome.FAILED, reason) == _stop(answers[save])


def test_a_syntax_error_names_its_line(answers: dict[str, KernelReport]) -> None:
    source = (ROOT / "kernels" / "softmax" / "triton.py").read_text(encoding="utf-8")
    line = next(at for at, text in enumerate(source.splitlines(), 1) if EDITS["syntax"][0] in text)

    shown = watching.summary(answers["syntax"], 0.25)

    assert f"  kernels/softmax/triton.py:{line}: " in shown.splitlines()[1]


def test_a_summary_of_success_is_one_line(answers: dict[str, KernelReport]) -> None:
    shown = watching.summary(answers["fixed"], 0.25)

    assert re.fullmatch(
        r"\d\d:\d\d:\d\d  softmax/triton  precheck ok  compile ok  run ok  correctness ok  \(0\.25 s\)", shown
    )


def test_builds_without_sass_are_not_kept(answers: dict[str, KernelReport], root: Path) -> None:
    assert answers["fixed"].stopped_at is None
    assert [] == list((root / "cache").glob("compiled/*"))


def test_only_one_kernel_is_watched(tmp_path: Path) -> None:
    path = _project(tmp_path)
    shutil.copy(path, path.with_name("other.py"))

    with pytest.raises(ConfigError, match="matches 2 kernels, and one is watched"):
        next(watching.answers(tmp_path, "softmax"))


def test_a_changed_reference_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _project(tmp_path)
    monkeypatch.setenv("KERNELCI_CACHE", str(tmp_path / "cache"))
    reference = tmp_path / "references" / "softmax.py"
    watched = watching.answers(tmp_path, "softmax/triton")
    before, _ = next(watched)
    reference.write_text(reference.read_text(encoding="utf-8").replace("return e / e", "return 2 * e / e"), "utf-8")

    after, _ = next(watched)
    watched.close()

    assert (None, "wrong") == (before.stopped_at, _stop(after)[2])


def test_without_a_target_the_cards_first_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _project(tmp_path)
    monkeypatch.setenv("KERNELCI_CACHE", str(tmp_path / "cache"))
    text = path.read_text(encoding="utf-8").replace('["sm_80", "sm_90a", "sm_100a"]', '["sm_80"]')
    path.write_text(text, encoding="utf-8")
    watched = watching.answers(tmp_path, "softmax/triton")

    report, _ = next(watched)
    watched.close()

    compiled = report.rung("compile")
    assert compiled is not None
    assert {"sm_80"} == {row.target for row in compiled.rows}


def test_a_target_that_no_gpu_has_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    _project(tmp_path)

    with pytest.raises(ConfigError, match="sm_35"):
        next(watching.answers(tmp_path, "softmax/triton", "sm_35"))


def test_an_interrupt_is_the_usual_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    _project(tmp_path)
    monkeypatch.setattr(watching, "answers", interrupted)

    assert 130 == watching.watch(tmp_path, "softmax/triton")
    assert "watching kernels/softmax/triton.py; Ctrl-C ends it\n" == capsys.readouterr().err
