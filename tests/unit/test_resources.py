from pathlib import Path

import pytest

from kernelci import resources
from kernelci.errors import RunnerBroken


def test_our_templates_are_found() -> None:
    assert (resources.folder(resources.TEMPLATES) / "comment.md.j2").is_file()


def test_a_missing_folder_is_a_broken_installation() -> None:
    with pytest.raises(RunnerBroken, match="no-such-folder"):
        resources.folder("no-such-folder")


def test_the_projects_own_templates_come_first(tmp_path: Path) -> None:
    own = tmp_path / resources.TEMPLATES
    own.mkdir()

    assert (own, resources.folder(resources.TEMPLATES)) == resources.template_folders(tmp_path)


def test_a_project_without_templates_gets_ours(tmp_path: Path) -> None:
    assert (resources.folder(resources.TEMPLATES),) == resources.template_folders(tmp_path)
