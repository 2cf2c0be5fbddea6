"""The base of a comparison: read from a commit, paired by name, and gone without a trace."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelci import basing, catalog, config
from kernelci.basing import Base
from kernelci.catalog import Catalog
from kernelci.errors import ConfigError

CARD = '# /// script\n# [tool.kernelci]\n# reference = "sum"\n# backend = "triton"\n# entry = "sum"\n# ///\n'
FILES = {
    "references/sum.py": "reference = 1\n",
    "kernels/sum/one.py": CARD + "one = 1\n",
    "kernels/sum/one.cu": "// one\n",
    "kernels/sum/two.py": CARD + "two = 2\n",
    "kernelci.toml": "seeds = 1\n",
    "README.md": "text\n",
}


def _git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *settings, "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def _commit(root: Path, files: dict[str, str]) -> str:
    _write(root, files)
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--allow-empty", "--message", "m")
    return _git(root, "rev-parse", "HEAD")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one commit on `main`; branch `change` is checked out."""
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "--quiet")
    _commit(folder, FILES)
    _git(folder, "checkout", "--quiet", "-b", "change")
    return folder


def _head(root: Path) -> Catalog:
    return catalog.scan(root, config.load(root, {}))


def _remarks(root: Path, ref: str = "main") -> tuple[str, ...]:
    head = _head(root)
    with basing.opened(root, config.load(root, {}), ref) as base:
        return basing.remarks(base, head, head.kernels)


def _opened(root: Path, ref: str = "main") -> Base:
    with basing.opened(root, config.load(root, {}), ref) as base:
        return base


def test_a_kernel_is_paired_by_name_and_keeps_its_own_files(root: Path) -> None:
    _commit(root, {"kernels/sum/one.py": CARD + "one = 3\n", "kernels/sum/one.cu": "// three\n"})
    with basing.opened(root, config.load(root, {}), "main") as base:
        kernel = base.kernel("sum/one")
        assert kernel is not None
        assert ["// one\n", CARD + "one = 1\n"] == [path.read_text() for path in kernel.sources()]


def test_a_kernel_that_moved_is_paired_by_its_name(root: Path) -> None:
    named = CARD.replace("# backend", '# name = "one"\n# backend')
    (root / "kernels/sum/one.py").unlink()
    _commit(root, {"kernels/sum/renamed.py": named})
    assert ["sum/one", "sum/two"] == sorted(kernel.name for kernel in _head(root).kernels)
    assert () == _remarks(root)


def test_only_what_is_needed_is_written(root: Path) -> None:
    with basing.opened(root, config.load(root, {}), "main") as base:
        found = sorted(str(path.relative_to(base.root)) for path in base.root.rglob("*") if path.is_file())
    assert ["kernels/sum/one.cu", "kernels/sum/one.py", "kernels/sum/two.py", "references/sum.py"] == found


def test_nothing_is_left_behind(root: Path) -> None:
    def traces() -> list[str]:
        return sorted(str(path) for path in root.rglob("*"))

    def interrupted() -> None:
        with basing.opened(root, config.load(root, {}), "main") as base:
            folders.append(base.root)
            assert base.root.is_dir()
            raise KeyboardInterrupt

    before, folders = traces(), list[Path]()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ([False], before) == ([folder.exists() for folder in folders], traces())
    assert 1 == len(_git(root, "worktree", "list").splitlines())


def test_filters_and_hooks_do_not_run(root: Path) -> None:
    _git(root, "config", "filter.evil.smudge", f"touch {root}/evil; cat")
    _git(root, "config", "filter.evil.clean", f"touch {root}/evil; cat")
    _write(root, {".git/hooks/post-checkout": f"#!/bin/sh\ntouch {root}/evil\n", ".gitattributes": "* filter=evil\n"})
    os.chmod(root / ".git/hooks/post-checkout", 0o755)
    _opened(root)
    assert not (root / "evil").exists()


def test_the_change_names_both_commits_and_what_is_gone(root: Path) -> None:
    (root / "kernels/sum/two.py").unlink()
    head = _commit(root, {})
    found = basing.change(_opened(root), _head(root), ())
    assert found is not None
    assert (_git(root, "rev-parse", "main"), head, ("sum/two",)) == (found.base, found.head, found.removed)


def test_of_a_few_kernels_only_those_can_be_gone(root: Path) -> None:
    (root / "kernels/sum/two.py").unlink()
    found = basing.change(_opened(root), _head(root), ("sum/one", "sum/no-such"))
    assert found is not None
    assert () == found.removed


def test_a_new_kernel_is_named(root: Path) -> None:
    _commit(root, {"kernels/sum/three.py": CARD})
    assert ("not in main, and measured alone: sum/three",) == _remarks(root)


def test_a_reference_that_differs_is_named(root: Path) -> None:
    _commit(root, {"references/sum.py": "reference = 2\n"})
    (note,) = _remarks(root)
    assert note.startswith("references that main has not, or has otherwise: sum; both sides are judged by")


def test_configuration_that_differs_is_named(root: Path) -> None:
    _commit(root, {"kernelci.toml": "seeds = 2\nlanes = 3\n"})
    (note,) = _remarks(root)
    assert note.startswith("configuration that is another in main: seeds; both sides are judged by")


def test_what_is_not_committed_is_named(root: Path) -> None:
    _write(root, {"kernels/sum/one.py": CARD + "one = 4\n", "kernels/sum/three.py": CARD, "README.md": "more\n"})
    (root / "kernels/sum/two.py").unlink()
    listed = "kernels/sum/one.py, kernels/sum/three.py, kernels/sum/two.py"
    assert f"not committed, and judged as it is: {listed}" == _remarks(root)[0]


def test_a_base_without_kernels(tmp_path: Path) -> None:
    _git(tmp_path, "init", "--quiet")
    _commit(tmp_path, {"README.md": "text\n"})
    _git(tmp_path, "tag", "first")
    _commit(tmp_path, FILES)
    assert () == _opened(tmp_path, "first").catalog.kernels


def test_a_base_whose_configuration_is_of_another_version(root: Path) -> None:
    _commit(root, {"kernelci.toml": "no_such_option = 1\n"})
    _git(root, "tag", "odd")
    _commit(root, {"kernelci.toml": "seeds = 1\n"})
    assert 2 == len(_opened(root, "odd").catalog.kernels)


def test_a_project_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    project = tmp_path / "deep" / "project"
    project.mkdir(parents=True)
    _git(tmp_path, "init", "--quiet")
    _write(project, FILES)
    _commit(tmp_path, {"kernels/other.py": "not ours\n"})
    _write(project, {"kernels/sum/one.py": CARD + "dirty\n"})
    base = _opened(project, "HEAD")
    assert (["sum/one", "sum/two"], ("not committed, and judged as it is: kernels/sum/one.py",)) == (
        [kernel.name for kernel in base.catalog.kernels],
        base.notes,
    )


def test_a_commit_that_is_not_there(root: Path) -> None:
    with pytest.raises(ConfigError, match="this repository has no commit 'nowhere'") as caught:
        _opened(root, "nowhere")
    assert ("base", True) == (caught.value.code, "git fetch --depth=1 origin nowhere" in caught.value.hint)


def test_a_shallow_clone_that_lacks_the_commit(root: Path, tmp_path: Path) -> None:
    first = _git(root, "rev-parse", "main")
    _commit(root, {})
    _git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{root}", "clone")
    with pytest.raises(ConfigError, match="this shallow clone has no commit") as caught:
        _opened(tmp_path / "clone", first)
    assert "base" == caught.value.code


def test_a_shallow_clone_that_has_the_commit(root: Path, tmp_path: Path) -> None:
    _git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{root}", "clone")
    assert 2 == len(_opened(tmp_path / "clone", "HEAD").catalog.kernels)


def test_a_clone_without_the_files(root: Path, tmp_path: Path) -> None:
    _git(root, "config", "uploadpack.allowFilter", "true")
    _commit(root, {"kernels/sum/one.py": CARD + "one = 5\n"})
    _git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{root}", "clone")
    with pytest.raises(ConfigError) as caught:
        _opened(tmp_path / "clone", "HEAD~1")
    assert "base" == caught.value.code


def test_no_repository(tmp_path: Path) -> None:
    _write(tmp_path, FILES)
    with pytest.raises(ConfigError, match="not a git repository") as caught:
        _opened(tmp_path)
    assert "base" == caught.value.code


def test_a_folder_as_base(root: Path) -> None:
    base = basing.in_folder(root)
    assert (2, None) == (len(base.catalog.kernels), basing.change(base, _head(root), ()))


def test_a_labelled_folder_is_the_same_base_elsewhere(root: Path, tmp_path: Path) -> None:
    with basing.opened(root, config.load(root, environ={}), "HEAD") as base:
        basing.labelled(base)
        shutil.copytree(base.root, tmp_path / "elsewhere")

        again = basing.in_folder(tmp_path / "elsewhere")

    assert [getattr(base, name) for name in ("name", "commit", "head", "notes", "options")] == [
        getattr(again, name) for name in ("name", "commit", "head", "notes", "options")
    ]
    assert [kernel.name for kernel in base.catalog.kernels] == [kernel.name for kernel in again.catalog.kernels]


@pytest.mark.parametrize("text", ["", "{}", "[" * 9999, '{"name": 7}'])
def test_a_label_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / basing.LABEL).write_text(text)

    with pytest.raises(ConfigError, match=r"kernelci-base\.json"):
        basing.in_folder(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder") as caught:
        basing.in_folder(tmp_path / "nowhere")
    assert "base" == caught.value.code


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"one.py": CARD + '"""Another docstring."""\n# a comment\none = 1  # and one more\n'}, True),
        ({"one.py": CARD + "one = 2\n"}, False),
        ({"one.py": CARD + "def broken(:\n"}, False),
        ({"one.cu": "// C++ is compared as it is\n"}, False),
    ],
    ids=["nothing", "comments", "code", "what does not parse", "another file"],
)
def test_whether_sources_do_the_same(root: Path, tmp_path: Path, change: dict[str, str], same: bool) -> None:
    _write(root, {"kernels/sum/one.py": CARD + "one = 1\n"})
    other = tmp_path / "other"
    shutil.copytree(root, other)
    _write(other, {f"kernels/sum/{name}": text for name, text in change.items()})
    base, head = (_head(folder).select(("sum/one",))[0] for folder in (root, other))
    assert same == basing.same_sources(base, head)
