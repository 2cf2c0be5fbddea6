"""`init` writes a whole repository or nothing."""

from pathlib import Path

import pytest

from kernelci import catalog, config
from kernelci.errors import ConfigError
from kernelci.hub import init, judge

SOURCE = "octo/kernelci@" + "0123456789" * 4


def test_what_it_writes_is_a_project(tmp_path: Path) -> None:
    written = init.create(tmp_path, SOURCE)
    assert sorted(init.FILES) == sorted(map(str, written))
    found = catalog.scan(tmp_path, config.load(tmp_path, environ={}))
    assert (["line/triton"], ["line"]) == ([kernel.name for kernel in found.kernels], list(found.references))
    assert "" == found.kernels[0].error


def test_workflows_are_pinned_to_the_source(tmp_path: Path) -> None:
    init.create(tmp_path, SOURCE)
    for name in ("kernels", "report", "commands", "nightly"):
        text = (tmp_path / f".github/workflows/{name}.yml").read_text()
        assert f"uses: octo/kernelci/.github/workflows/{name}.yml@{'0123456789' * 4}" in text
    text = (tmp_path / ".github/workflows/profile.yml").read_text()
    assert f"uses: octo/kernelci/.github/workflows/profiling.yml@{'0123456789' * 4}" in text


def test_only_the_kernel_and_the_advice_are_no_judge() -> None:
    assert ["AGENTS.md", "kernels/line/triton.py", "skills/gpu-kernels/SKILL.md"] == sorted(
        name for name in init.FILES if judge.role(name, config.Config()) is None
    )


@pytest.mark.parametrize("name", list(init.FILES))
def test_it_overwrites_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("mine\n")
    with pytest.raises(ConfigError, match=name):
        init.create(tmp_path, SOURCE)
    assert [tmp_path / name] == [path for path in tmp_path.rglob("*") if path.is_file()]
    assert "mine\n" == (tmp_path / name).read_text()


def test_options_that_stand_elsewhere_are_not_doubled(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.kernelci]\nlanes = 2\n")
    with pytest.raises(ConfigError, match=r"pyproject.toml \[tool.kernelci\] already there"):
        init.create(tmp_path, SOURCE)
    assert [tmp_path / "pyproject.toml"] == list(tmp_path.iterdir())


def test_another_tools_pyproject_is_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n")
    assert list(init.FILES) == list(map(str, init.create(tmp_path, SOURCE)))


def test_it_writes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / ".github").symlink_to(tmp_path / "away")
    with pytest.raises(ConfigError, match="no folder of this repository"):
        init.create(tmp_path / "repository", SOURCE)
    assert [] == list((tmp_path / "away").iterdir())


@pytest.mark.parametrize("source", ["octo/kernelci", "octo/kernelci@main", "octo/kernelci@012345", "x@" + "0" * 40])
def test_a_source_is_a_whole_commit(tmp_path: Path, source: str) -> None:
    with pytest.raises(ConfigError, match="does not say"):
        init.create(tmp_path, source)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        init.create(tmp_path / "nowhere", SOURCE)
