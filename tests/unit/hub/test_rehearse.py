"""`rehearse` on a change that touches no kernel: what it says of where the report lies, and what it leaves to git."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelci.cli import cli


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit and no kernel."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "README").touch()
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "-q"), ("add", "README"), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_the_report_is_where_it_says_and_none_of_gits_business(repository: Path) -> None:
    out = repository / "report"

    found = CliRunner().invoke(cli, ["--root", str(repository), "rehearse", "--base", "HEAD", "--out", str(out)])

    status = subprocess.run(["git", "status", "--short"], cwd=repository, check=True, capture_output=True, text=True)
    assert (0, f"report: {out}\n", True) == (found.exit_code, found.stderr, (out / "results.json").is_file())
    assert "" == status.stdout
