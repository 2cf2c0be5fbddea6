"""A change with a judge of its own, heard in a sandbox after the base's judge: nothing of it turns anything green."""

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import scratch  # beside this file; conftest.py makes it importable

from kernelci import results
from kernelci.hub import climbing, judge, rehearse
from kernelci.hub.request import Mode, Request
from kernelci.model import Report
from kernelci.reasons import Outcome
from kernelci.workbench import sandbox

sandboxed = pytest.mark.skipif(not sandbox.level().sandboxed, reason=f"no sandbox here: {sandbox.level().why}")
WRONG = scratch.CARD.format("sum") + "def other():\n    pass\n"
FORGER = """
    import json, os, pathlib

    out = pathlib.Path("/private/out")
    out.mkdir()
    passed = [{"rung": name, "outcome": "PASSED"} for name in ("precheck", "compile", "run", "correctness")]
    kernels = [
        {"name": name, "reference": "sum", "backend": "triton", "path": "x", "sha256": "0", "rungs": passed}
        for name in ("sum/one", "sum/two", "sum/never")
    ]
    where = {"machine": "m", "python": "3"}
    report = {"schema_version": 1, "kernelci_version": "9", "started_at": "now", "duration_s": 0.0}
    change = {"base": "b", "head": "a"}
    report |= {"environment": where, "kernels": kernels, "change": change, "notes": ["all is well"]}
    (out / "results.json").write_text(json.dumps(report))
    os._exit(0)
"""


REFERENCE = """
    from kernelci.reference import check, like
    def cases():
        for n in (4, 100):
            yield check(n=n, dtype="float32")
    def inputs(case, draw):
        return {"x": draw.normal(case.n, dtype=case.dtype)}
    def outputs(case):
        return {"y": like("x")}
    def reference(x):
        return x
"""
KERNEL = """
    # /// script
    # [tool.kernelci]
    # reference = "copy"
    # backend = "triton"
    # entry = "copy"
    # targets = ["sm_80"]
    # ///
    import triton
    import triton.language as tl

    @triton.jit
    def move(x, y, n, SIZE: tl.constexpr):
        at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(y + at, tl.load(x + at, at < n), at < n)

    def copy(x, y):
        move[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), SIZE=64)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with branch `change` checked out."""
    return scratch.repository(tmp_path / "repository")


@pytest.fixture
def narrow() -> Iterator[None]:
    """New files are for their owner alone."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def heard(repository: Path, mode: Mode = "compile", only: tuple[str, ...] = ()) -> Report:
    out = repository.parent / "out"
    request = Request(
        project=repository, base="main", head="change", out=out, mode=mode, second=True, by="ada", only=only
    )
    report = climbing.climb_change(request)
    assert report == results.read(out)
    return report


def words(report: Report) -> dict[str, Outcome]:
    """What the second referee says of each kernel."""
    assert report.second is not None
    return {kernel.name: kernel.outcome for kernel in report.second.kernels}


@sandboxed
def test_a_forged_report_turns_nothing_green(repository: Path) -> None:
    scratch.commit(repository, {"kernels/sum/one.py": WRONG, "rungs/own.py": textwrap.dedent(FORGER)})
    report = heard(repository)
    assert (Outcome.FAILED, 1, ["sum/one"]) == (
        report.outcome,
        report.exit_code,
        [each.name for each in report.kernels],
    )
    assert {"sum/one": Outcome.PASSED} == words(report)
    assert report.change is not None
    assert report.change.head == scratch.git(repository, "rev-parse", "change")
    assert "all is well" not in report.notes


@sandboxed
def test_a_kernel_whose_reference_is_the_heads_is_such_a_row(repository: Path, narrow: None) -> None:
    scratch.commit(repository, {"references/new.py": "reference = 1\n", "kernels/new/a.py": scratch.CARD.format("new")})
    report = heard(repository)
    assert (Outcome.SKIPPED, 3, {"new/a": Outcome.FAILED}) == (report.outcome, report.exit_code, words(report))
    assert report.second is not None
    (kernel,) = report.second.kernels
    assert ("kernels/new/a.py", "new", "precheck") == (kernel.path, kernel.reference, kernel.rungs[0].rung)
    assert (True, "ada", "") == ("bubblewrap" in report.second.isolation, report.second.by, report.second.why)


@sandboxed
def test_an_honest_reference_of_the_heads_is_climbed_with_whole(repository: Path) -> None:
    """Candidates in a sandbox in the sandbox: the kernel compiles, runs in the interpreter, and is right."""
    files = {"references/copy.py": textwrap.dedent(REFERENCE), "kernels/copy/mine.py": textwrap.dedent(KERNEL).lstrip()}
    scratch.commit(repository, files)
    report = heard(repository, "run")
    assert report.second is not None
    (kernel,) = report.second.kernels
    outcomes = {rung.rung: rung.outcome for rung in kernel.rungs}
    climbed = {name: outcomes[name] for name in ("precheck", "compile", "run", "correctness")}
    assert dict.fromkeys(climbed, Outcome.PASSED) == climbed, kernel.stopped_at
    assert (Outcome.SKIPPED, 3, "") == (report.outcome, report.exit_code, report.second.why)


@sandboxed
def test_a_rehearsal_shows_the_rows_and_stays_red(repository: Path, tmp_path: Path) -> None:
    scratch.commit(repository, {"rungs/own.py": textwrap.dedent(FORGER)})
    page, code = rehearse.rehearse(repository, "main", "change", "compile", tmp_path / "report", second=True)
    assert ("✋ The change touches the judge (1 file)" in page, 1) == (True, code)
    assert ["sum/one", "sum/two"] == [name for name in ("sum/one", "sum/two") if f"second referee: {name}" in page]
    assert "second referee: sum/never" not in page


def test_without_leave_nothing_of_it_runs(repository: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    scratch.commit(repository, {"rungs/own.py": f"open({str(trace)!r}, 'w')\n"})
    page, code = rehearse.rehearse(repository, "main", "change", "compile", tmp_path / "report")
    assert (False, 1, False) == (trace.exists(), code, "second referee: " in page)
    assert "the label kernelci:judge does it, for this commit alone" in page


def test_a_change_without_a_judge_of_its_own_has_no_second_referee(repository: Path) -> None:
    scratch.commit(repository, {"README.md": "more\n"})
    assert heard(repository).second is None


def test_a_head_too_large_for_a_sandbox_is_a_sentence(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "MAX_TREE_FILES", 3)
    scratch.commit(repository, {"references/sum.py": "reference = 2\n"})
    report = heard(repository)
    assert report.second is not None
    assert report.second.why.startswith("the head is 5 files of ")


def concerned(repository: Path, into: Path) -> list[str]:
    found = judge.assemble(judge.Repository(repository), "main", "change", into)
    return [kernel.name for kernel in found.concerned]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"README.md": "x\n"}, []),
        ({"kernels/sum/one.py": WRONG}, []),
        ({".github/workflows/x.yml": "x\n"}, []),
        ({"references/sum.py": "reference = 2\n"}, ["sum/one", "sum/two"]),
        ({"kernelci.toml": "seeds = 2\n"}, ["sum/one", "sum/two"]),
        ({"kernelci.toml": "seeds = 2\n", "kernels/sum/two.py": WRONG}, ["sum/two"]),
        ({"report_templates/comment.md.j2": "x\n"}, []),
        ({"report_templates/comment.md.j2": "x\n", "kernels/sum/two.py": WRONG}, ["sum/two"]),
        ({"references/new.py": "x\n", "kernels/new/a.py": scratch.CARD.format("new")}, ["new/a"]),
    ],
)
def test_it_is_asked_of_what_its_judge_concerns(files, expected, repository: Path, tmp_path: Path) -> None:
    scratch.commit(repository, files)
    assert expected == concerned(repository, tmp_path / "tree")
