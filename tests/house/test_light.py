"""What must be quick imports neither torch nor a DSL; files and functions stay small."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "kernelci").rglob("*.py"))
HEAVY = ("torch", "triton", "tilelang", "cutlass", "cuda", "numpy", "scipy", "tvm")
CHILD = f"""
import sys
sys.argv = ["kernelci", *sys.argv[1:]]
from kernelci.__main__ import main
try:
    main()
except SystemExit as end:
    code = end.code
loaded = sorted(set(sys.modules) & set({HEAVY!r}))
print("CODE", code, "LOADED", *loaded)
"""


def _run(*arguments: str) -> str:
    """The last line of a child process that runs a command: its exit code and the heavy modules that it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [("--help",), ("list",), ("list", "--json")])
def test_command_is_light(arguments: tuple[str, ...]) -> None:
    assert "CODE 0 LOADED" == _run(*arguments)


def test_report_is_light(tmp_path: Path) -> None:
    from kernelci import results
    from kernelci.model import SCHEMA_VERSION, Environment, Report

    results.write(Report(SCHEMA_VERSION, "0", "2026-01-01T00:00:00+00:00", 0.0, Environment("m", "3"), ()), tmp_path)
    assert _run("report", str(tmp_path)).endswith(" LOADED")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_is_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_are_small(path: Path) -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, functions)]
    assert [] == [node.name for node in nodes if (node.end_lineno or 0) - node.lineno >= 60]
