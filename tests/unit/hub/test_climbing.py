"""A change, judged in a process of its own: what the report says beyond the ladder's."""

from pathlib import Path
from typing import Any

import pytest
import scratch  # beside this file; conftest.py makes it importable

from kernelci import results
from kernelci.errors import ConfigError
from kernelci.hub import climbing, request
from kernelci.model import Report
from kernelci.reasons import Outcome


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with branch `change` checked out."""
    return scratch.repository(tmp_path / "repository")


def climbed(repository: Path, only: tuple[str, ...] = (), mode: request.Mode = "compile") -> Report:
    out = repository.parent / "out"
    report = climbing.climb_change(
        request.Request(project=repository, base="main", head="change", out=out, only=only, seed="ab", mode=mode)
    )
    assert report == results.read(out)
    return report


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["run", "--out", "/o", "--"]),
        ({"tier": "full"}, ["run", "--out", "/o", "--tier", "full", "--"]),
        ({"mode": "compile", "seed": "ab"}, ["compile", "--out", "/o", "--"]),
        ({"seed": "ab", "base": Path("/b")}, ["run", "--out", "/o", "--seed", "ab", "--base-folder", "/b", "--"]),
    ],
)
def test_what_is_asked_of_the_ladder(more: dict[str, Any], expected: list[str]) -> None:
    base = more.pop("base", None)
    asked = request.Request(project=Path("/p"), base="", head="", out=Path("/o"), **more)
    command = climbing.arguments(Path("/p"), asked, ["--evil", "a/b"], base)
    assert [*expected, "--evil", "a/b"] == command[command.index("/p") + 1 :]


def test_a_change_that_touches_no_kernel(repository: Path) -> None:
    scratch.commit(repository, {"README.md": "more\n"})
    report = climbed(repository)
    assert ((), (climbing.NOTHING,), 3) == (report.kernels, report.notes, report.exit_code)


def test_a_removed_kernel_is_in_the_report(repository: Path) -> None:
    scratch.commit(repository, {"kernels/sum/one.py": None})
    report = climbed(repository)
    assert report.change is not None
    assert (("sum/one",), ()) == (report.change.removed, report.notes)


def test_a_kernel_of_a_reference_in_the_head_is_skipped_and_says_why(repository: Path) -> None:
    scratch.commit(
        repository, {"references/new.py": "raise SystemExit\n", "kernels/new/a.py": scratch.CARD.format("new")}
    )
    report = climbed(repository)
    assert [("new/a", Outcome.SKIPPED, "reference-only-in-head")] == [
        (kernel.name, kernel.outcome, rung.finding.reason if rung.finding else "")
        for kernel in report.kernels
        for rung in kernel.rungs
    ]


def test_a_touched_kernel_is_climbed_with_and_the_others_are_not(repository: Path) -> None:
    scratch.commit(repository, {"kernels/sum/one.py": scratch.CARD.format("sum") + "def other():\n    pass\n"})
    report = climbed(repository)
    assert [("sum/one", Outcome.FAILED, "precheck")] == [
        (kernel.name, kernel.outcome, kernel.stopped_at.rung if kernel.stopped_at else "") for kernel in report.kernels
    ]
    assert ["kernels/sum/one.py"] == [kernel.path for kernel in report.kernels]


def test_a_change_is_compared_with_its_base(repository: Path) -> None:
    text = scratch.CARD.format("sum") + "def other():\n    pass\n"
    scratch.commit(repository, {"kernels/sum/one.py": text, "kernels/sum/new.py": text})
    report = climbed(repository, mode="run")
    assert (["sum/new", "sum/one"], ("not in the base, and measured alone: sum/new",)) == (
        [kernel.name for kernel in report.kernels],
        report.notes,
    )


def test_a_shard_climbs_with_its_own_kernels_only(repository: Path) -> None:
    text = scratch.CARD.format("sum") + "def other():\n    pass\n"
    scratch.commit(repository, {"kernels/sum/one.py": text, "kernels/sum/two.py": text})
    assert ["sum/two"] == [kernel.name for kernel in climbed(repository, ("sum/two",)).kernels]


def test_a_kernel_that_the_change_does_not_touch(repository: Path) -> None:
    scratch.commit(repository, {"README.md": "more\n"})
    with pytest.raises(ConfigError, match="does not touch sum/two"):
        climbed(repository, ("sum/two",))


def test_an_old_report_is_never_taken_for_a_new_one(repository: Path) -> None:
    scratch.commit(repository, {"kernels/sum/one.py": scratch.CARD.format("sum") + "x\n", "README.md": "x\n"})
    out = repository.parent / "out"
    out.mkdir()
    (out / results.FILE_NAME).write_text("{}")
    scratch.git(repository, "checkout", "--quiet", "main")
    scratch.commit(repository, {"kernelci.toml": "seeds = 'many'\n"})
    with pytest.raises(ConfigError):
        climbed(repository)
