"""What README and the other pages say is there: commands, options, links, examples, fields."""

import re
from pathlib import Path

import click
import msgspec
import pytest

from kernelci import model, reference
from kernelci.card import parse
from kernelci.cli import cli
from kernelci.reasons import REASONS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
IDS = [page.name for page in PAGES]
# What repositories that use kernelci have, and patterns of names: no files of this repository.
ELSEWHERE = ("kernelci-report", "rungs/", "NAME", "REFERENCE")


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", _text(page), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", _text(page)) if "://" not in link]

    assert [] == [link for link in links if not (page.parent / link).exists()]


def _anchors(page: Path) -> set[str]:
    """What GitHub calls the page's headings."""
    headings = re.findall(r"^#+ (.*)$", _text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_to_headings(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]*)#([^)]+)\)", _text(page)) if "://" not in link[0]]

    missing = [(file, anchor) for file, anchor in links if anchor not in _anchors(page.parent / file if file else page)]
    assert [] == missing


def test_every_section_that_a_benchmark_writes_has_both_marks() -> None:
    marks = re.findall(r"^<!-- (end of )?(\w+) -->$", _text(ROOT / "docs" / "measurements.md"), re.MULTILINE)

    names = [name for end, name in marks if not end]
    assert [mark for name in names for mark in (("", name), ("end of ", name))] == marks
    assert len(names) == len(set(names))


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`((?:kernelci|docs|tests|references|report_templates)/[\w./-]+)`", _text(page))

    missing = [name for name in named if not (ROOT / name).exists()]
    assert [] == [name for name in missing if not any(word in name for word in ELSEWHERE)]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_commands_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"`kernelci ([a-z]+)", _text(page)))

    assert set() == named - set(cli.commands)


def test_the_architecture_names_every_module_of_the_workbench() -> None:
    named = set(re.findall(r"`(\w+)`", _text(ROOT / "docs" / "architecture.md")))
    modules = {path.stem for path in (ROOT / "kernelci" / "workbench").glob("*.py")} - {"__init__"}

    assert set() == modules - named


def test_readme_names_the_options_of_run() -> None:
    line = next(line for line in _text(ROOT / "README.md").splitlines() if line.startswith("| `kernelci run"))
    options = {
        name for option in cli.commands["run"].params if isinstance(option, click.Option) for name in option.opts
    }

    assert set() == set(re.findall(r"--[a-z-]+", line)) - options


def test_the_reference_in_the_readme_works(tmp_path: Path) -> None:
    (source,) = (block for block in _blocks(ROOT / "README.md", "python") if "def cases" in block)
    path = tmp_path / "example.py"
    path.write_text(source, encoding="utf-8")

    loaded = reference.load(path)

    assert ["check", "bench"] == [case.kind for case in loaded.cases()]
    assert 5 * 3 * 127 == loaded.cost(loaded.cases()[0], {}, {}).flops


def test_the_card_in_the_readme_is_one() -> None:
    (source,) = (block for block in _blocks(ROOT / "README.md", "python") if "/// script" in block)

    assert ("softmax", "triton") == ((card := parse(source)).reference, card.backend)


def test_agents_reads_fields_that_reports_have() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", _text(ROOT / "AGENTS.md"), re.MULTILINE)
    named = {field for row in rows for name in re.findall(r"`([^`]+)`", row) for field in re.findall(r"\w+", name)}
    structs = (model.Report, model.KernelReport, model.RungResult, model.Finding, model.Row, model.Metric)
    known = {field.name for struct in structs for field in msgspec.structs.fields(struct)}

    assert named
    assert set() == named - known


def test_agents_names_the_exit_codes_of_the_command_line() -> None:
    told = re.findall(r"(\d+) [a-z]", re.sub(r"\s+", " ", _text(ROOT / "AGENTS.md").partition("Exit codes:")[2])[:400])

    assert re.findall(r"(\d+) [a-z]", (cli.help or "").partition("Exit codes:")[2]) == told[:7]


def test_reasons_that_are_named_exist() -> None:
    section = _text(ROOT / "docs" / "correctness.md").partition("## Around a call")[2].partition("## ")[0]
    codes = {
        code for group in re.findall(r"\(((?:`[a-z-]+`(?:, )?)+)\)", section) for code in re.findall(r"[a-z-]+", group)
    }

    assert "unwritten" in codes
    assert set() == codes - set(REASONS)
