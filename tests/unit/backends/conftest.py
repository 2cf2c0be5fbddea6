"""Builds examples for a GPU that is not there, each DSL in its own child: backends change process-wide state."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent / "examples"
ROOT = Path(__file__).parents[3]
CHILD = """
import contextlib, json, os, sys, types, warnings
from pathlib import Path
warnings.simplefilter("ignore")
ADDRESS = 0x7F0012345600  # of the buffer that a job with `regions` traces into
backend_name, cache, jobs = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
from kernelci import backends, gpus
backend = backends.get(backend_name)
os.environ.update(backend.environment(cache))
backend.preload()
from kernelci.compiling import building, loading
from kernelci.tracing.prelude import Tracing
from kernelci.workbench import cubin
import torch
answers = []
for job in jobs:
    spec = lambda v: building.StandInSpec(tuple(v["shape"]), v["dtype"], None, v.get("offset", 0))
    arguments = {name: spec(v) if isinstance(v, dict) else v for name, v in job["arguments"].items()}
    answer = {"builds": [], "notes": [], "error": "", "message": "", "line": 0, "file": ""}
    try:
        gpu = gpus.for_target(job["target"])
        case = types.SimpleNamespace(**job.get("case", {}))
        if hasattr(case, "dtype"):
            case.dtype = getattr(torch, case.dtype)
        regions = job.get("regions")
        traced = contextlib.nullcontext() if regions is None else backend.traced(Tracing(ADDRESS, tuple(regions)))
        with traced:
            module = loading.load(Path(job["file"]))
            result = building.build(module, job["entry"], case, arguments, gpu, backend, job.get("all_configs", False))
        answer["notes"] = list(result.notes)
        for made in result.builds:
            files = {name: content.decode(errors="replace") for name, content in made.files.items()}
            if made.files.get("cubin"):
                files["sass"] = cubin.disassemble(made.files["cubin"])
            answer["builds"].append(dict(symbol=made.symbol, config=made.config, files=files, grid=made.grid,
                                         block=made.block, shared=made.dynamic_shared_bytes))
    except Exception as error:
        answer.update(error=type(error).__name__, message=str(error), line=getattr(error, "line", 0),
                      file=getattr(error, "file", ""))
    answers.append(answer)
print("ANSWERS" + json.dumps(answers))
"""


def example(name: str, marker: str = "") -> tuple[str, int]:
    """Path of an example, and the number of the line that holds `marker`."""
    path = EXAMPLES / name
    lines = path.read_text().splitlines()
    return str(path), next((number for number, line in enumerate(lines, 1) if marker and marker in line), 0)


@pytest.fixture(scope="session")
def build_all(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """A function (backend, jobs) -> answers, one each; all jobs share one child process."""

    def run(backend: str, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        cache = tmp_path_factory.mktemp(backend)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", CHILD, backend, str(cache), json.dumps(jobs)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=cache)
        assert "ANSWERS" in done.stdout, done.stderr[-3000:]
        answers: list[dict[str, Any]] = json.loads(done.stdout.split("ANSWERS", 1)[1])
        return answers

    return run
