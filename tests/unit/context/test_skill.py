"""What agents are told about a repository names its folders, real commands and real exit codes."""

from pathlib import Path

from kernelci import errors
from kernelci.cli import cli
from kernelci.context.skill import COMMANDS, skill_text


def test_skill_names_the_project_folders(tmp_path: Path) -> None:
    (tmp_path / "kernelci.toml").write_text("references = 'truth'\nkernels = 'fast'\n", encoding="utf-8")
    text = skill_text(tmp_path)
    assert (True, True) == ("`truth/NAME.py`" in text, "`fast/NAME/*.py`" in text)


def test_skill_names_commands_that_exist() -> None:
    verbs = {command.split()[1] for command, _ in COMMANDS}
    assert set() == verbs - set(cli.commands)


def test_skill_names_every_exit_code(tmp_path: Path) -> None:
    text = skill_text(tmp_path)
    codes = {0, 1} | {kind.exit_code for kind in (errors.ConfigError, errors.NothingToDo, errors.RunnerBroken)}
    assert codes == {int(line.split()[1][:-1]) for line in text.splitlines() if line[:2] == "- " and line[2].isdigit()}
