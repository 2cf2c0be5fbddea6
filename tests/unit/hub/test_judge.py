"""The tree that judges a change: the base's, with the head's kernels over it; nothing else of the head."""

from pathlib import Path

import pytest
import scratch  # beside this file; conftest.py makes it importable

from kernelci.config import Config
from kernelci.errors import ConfigError
from kernelci.git import Repository
from kernelci.hub import judge


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with branch `change` checked out."""
    return scratch.repository(tmp_path / "repository")


def judged(repository: Path, base: str = "main", head: str = "change") -> judge.Judged:
    return judge.assemble(Repository(repository), base, head, repository.parent / "tree")


def test_a_changed_kernel_comes_from_the_head(repository: Path) -> None:
    scratch.commit(repository, {"kernels/sum/one.py": scratch.CARD.format("sum") + "one = 3\n"})
    found = judged(repository)
    assert ("sum/one",) == found.kernels
    assert (found.root / "kernels/sum/one.py").read_text().endswith("one = 3\n")


def test_judge_files_come_from_the_base(repository: Path) -> None:
    hostile = dict.fromkeys(
        ("references/sum.py", "kernelci.toml", "rungs/x.py", "conftest.py", "torch.py"), "hostile\n"
    )
    scratch.commit(repository, hostile)
    found = judged(repository)
    assert ("reference = 1\n", "seeds = 1\n") == tuple(
        (found.root / name).read_text() for name in ("references/sum.py", "kernelci.toml")
    )
    assert [] == [name for name in ("rungs", "conftest.py", "torch.py") if (found.root / name).exists()]


def test_the_change_says_what_of_the_judge_it_touches(repository: Path) -> None:
    scratch.commit(repository, {"references/sum.py": "reference = 2\n", "rungs/x.py": "x\n", "README.md": "more\n"})
    found = judged(repository).change.judge
    assert [("references/sum.py", "reference", "modified"), ("rungs/x.py", "rung", "added")] == [
        (each.path, each.role, each.change) for each in found
    ]
    assert "-reference = 1\n+reference = 2\n" in found[0].difference


def test_commits_are_named_in_full(repository: Path) -> None:
    head = scratch.commit(repository, {"README.md": "more\n"})
    change = judged(repository).change
    assert (scratch.git(repository, "rev-parse", "main"), head) == (change.base, change.head)


def test_what_only_the_base_changed_is_no_part_of_the_change(repository: Path) -> None:
    scratch.commit(repository, {"kernels/sum/one.py": scratch.CARD.format("sum") + "one = 3\n"})
    scratch.git(repository, "checkout", "--quiet", "main")
    scratch.commit(
        repository, {"kernels/sum/two.py": scratch.CARD.format("sum") + "two = 4\n", "references/sum.py": "new\n"}
    )
    found = judged(repository)
    assert (("sum/one",), ()) == (found.kernels, found.change.judge)
    assert (found.root / "kernels/sum/two.py").read_text().endswith("two = 4\n")
    assert "new\n" == (found.root / "references/sum.py").read_text()


def test_a_removed_kernel_is_named(repository: Path) -> None:
    scratch.commit(repository, {"kernels/sum/two.py": None})
    found = judged(repository)
    assert (("sum/two",), ()) == (found.change.removed, found.kernels)


def test_a_renamed_kernel_is_removed_and_climbed(repository: Path) -> None:
    scratch.git(repository, "mv", "kernels/sum/two.py", "kernels/sum/deux.py")
    scratch.commit(repository, {})
    found = judged(repository)
    assert (("sum/two",), ("sum/deux",)) == (found.change.removed, found.kernels)


def test_a_kernel_that_became_a_link_is_left_out(repository: Path) -> None:
    (repository / "kernels/sum/one.py").unlink()
    (repository / "kernels/sum/one.py").symlink_to("/etc/passwd")
    scratch.commit(repository, {})
    found = judged(repository)
    assert not (found.root / "kernels/sum/one.py").exists()
    assert (("sum/one",), True) == (found.change.removed, "link" in found.notes[0])


def test_nothing_is_written_through_a_link_of_the_base(tmp_path: Path) -> None:
    repository = scratch.repository(tmp_path / "repository")
    scratch.commit(repository, {"kernels/away/sum.py": "hostile\n"})
    scratch.git(repository, "checkout", "--quiet", "main")
    (repository / "kernels/away").symlink_to("../references", target_is_directory=True)
    scratch.commit(repository, {})
    with pytest.raises(ConfigError, match="link of the base"):
        judged(repository)


def test_a_link_of_the_base_gives_way_to_a_folder(tmp_path: Path) -> None:
    repository = scratch.repository(tmp_path / "repository")
    scratch.git(repository, "checkout", "--quiet", "main")
    (repository / "kernels/away").symlink_to("../references", target_is_directory=True)
    scratch.commit(repository, {})
    scratch.git(repository, "checkout", "--quiet", "-B", "change")
    (repository / "kernels/away").unlink()
    scratch.commit(repository, {"kernels/away/sum.py": "hostile\n"})
    found = judged(repository)
    assert "reference = 1\n" == (found.root / "references/sum.py").read_text()


def test_a_file_where_the_base_has_a_folder(repository: Path) -> None:
    scratch.commit(repository, {"kernels/sum/new.py": scratch.CARD.format("sum")})
    scratch.git(repository, "checkout", "--quiet", "main")
    scratch.commit(repository, {"kernels/sum/new.py/x.py": "x\n"})
    with pytest.raises(ConfigError, match="does not fit the base"):
        judged(repository)


def test_a_reference_only_in_the_head_judges_nothing(repository: Path) -> None:
    scratch.commit(repository, {"references/new.py": "x\n", "kernels/new/a.py": scratch.CARD.format("new")})
    found = judged(repository)
    assert ((), ("new/a",), ("new/a",)) == (
        found.kernels, tuple(kernel.name for kernel in found.unjudged), found.change.unjudged,
    )  # fmt: skip


def test_a_reference_that_is_nowhere_is_the_kernels_fault(repository: Path) -> None:
    scratch.commit(repository, {"kernels/new/a.py": scratch.CARD.format("new")})
    found = judged(repository)
    assert (("new/a",), ()) == (found.kernels, found.unjudged)


@pytest.mark.parametrize("name", ["kernels/sum/one.cu", "kernels/sum/_shared.py"])
def test_a_file_beside_a_kernel_touches_it(repository: Path, name: str) -> None:
    scratch.commit(repository, {name: "x\n"})
    assert "sum/one" in judged(repository).kernels


def test_the_first_kernels_of_a_repository(tmp_path: Path) -> None:
    scratch.git(tmp_path, "init", "--quiet")
    scratch.commit(tmp_path, {"references/sum.py": "x\n"})
    scratch.git(tmp_path, "checkout", "--quiet", "-b", "change")
    scratch.commit(tmp_path, {"kernels/sum/one.py": scratch.CARD.format("sum")})
    found = judge.assemble(Repository(tmp_path), "main", "change", tmp_path.parent / f"{tmp_path.name}-tree")
    assert (("sum/one",), ()) == (found.kernels, found.change.judge)


def test_a_project_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    scratch.git(tmp_path, "init", "--quiet")
    card = scratch.CARD.format("sum")
    scratch.commit(tmp_path, {"gpu/references/sum.py": "x\n", "gpu/kernels/sum/one.py": card})
    scratch.git(tmp_path, "checkout", "--quiet", "-b", "change")
    changed = {"gpu/kernels/sum/one.py": card + "x\n", "gpu/references/sum.py": "y\n", ".github/workflows/a.yml": "a\n"}
    scratch.commit(tmp_path, changed)
    found = judge.assemble(Repository(tmp_path / "gpu"), "main", "change", tmp_path.parent / f"{tmp_path.name}-tree")
    assert ("sum/one",) == found.kernels
    assert {"gpu/references/sum.py": "reference", ".github/workflows/a.yml": "workflow"} == {
        each.path: each.role for each in found.change.judge
    }


def test_too_large_a_change(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "MAX_FILE_BYTES", 100)
    scratch.commit(repository, {"kernels/sum/one.py": scratch.CARD.format("sum") + "x" * 200})
    with pytest.raises(ConfigError, match=r"kernels/sum/one\.py"):
        judged(repository)


def test_an_unknown_commit(repository: Path) -> None:
    with pytest.raises(ConfigError, match="no commit '--upload-pack=x'"):
        judged(repository, base="--upload-pack=x")


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="git"):
        Repository(tmp_path)


def test_attributes_and_filters_of_the_head_are_not_used(repository: Path) -> None:
    trace = repository.parent / "trace"
    scratch.git(repository, "config", "filter.evil.smudge", f"touch {trace}")
    scratch.git(repository, "config", "diff.evil.textconv", f"touch {trace}")
    content = scratch.CARD.format("sum") + "$Id$\n"
    scratch.commit(
        repository, {".gitattributes": "* filter=evil diff=evil ident export-subst\n", "kernels/sum/one.py": content}
    )
    found = judged(repository)
    assert content == (found.root / "kernels/sum/one.py").read_text()
    assert not trace.exists()


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("references/a.py", "reference"), ("references/deep/a.py", "reference"), ("rungs/a.py", "rung"),
        ("report_templates/comment.md.j2", "template"), ("pyproject.toml", "configuration"),
        ("kernelci.toml", "configuration"),
        (".github/workflows/kernels.yml", "workflow"), (".github/CODEOWNERS", "workflow"), ("action.yml", "workflow"),
        ("setup.py", "packaging"), ("deep/conftest.py", "packaging"), ("x.pth", "packaging"), ("uv.lock", "packaging"),
        ("requirements-dev.txt", "packaging"), ("kernelci/cli.py", "kernelci"),
        ("kernels/sum/one.py", None), ("README.md", None), ("docs/a.md", None),
    ],
)  # fmt: skip
def test_roles(path: str, role: str | None) -> None:
    assert role == judge.role(path, Config())
