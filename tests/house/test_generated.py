"""Pages that are made from the code are in step with it."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import jsonschema

from kernelci import results

ROOT = Path(__file__).parents[2]


def test_the_generated_pages_are_in_step() -> None:
    command = [sys.executable, "docs/generate.py", "--check"]

    checked = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )

    assert (0, "") == (checked.returncode, checked.stdout + checked.stderr), "run: python docs/generate.py"


def test_reports_fit_the_schema(reports: ModuleType) -> None:
    schema = json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8"))

    jsonschema.Draft202012Validator.check_schema(schema)
    for make in reports.ALL.values():
        jsonschema.validate(json.loads(results.encode(make())), schema)
