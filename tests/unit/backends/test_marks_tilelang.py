"""Marks of regions in TileLang: no statement where tracing is off, and a trace build's machine code where it is on."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelci.card import parse

ROOT = Path(__file__).parents[3]
_MARK = re.compile(r"^ *mark\(\".*\n", re.MULTILINE)
_HELPER = re.compile(r"^TRACED = .*?KERNELCI_\{name\}\"\)\)\n", re.DOTALL | re.MULTILINE)
MARKED = ("softmax", "matmul", "rmsnorm")
CLOCK, TIMER, STORE = "SR_CLOCKLO", "SR_GLOBALTIMERLO", r"STG\.E\.128"
# The programs of both files, as TIR; all that follows in TileLang is made of that.
CHILD = """
import json, os, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from kernelci import backends
backend = backends.get("tilelang")
os.environ.update(backend.environment(Path(sys.argv[1])))
backend.preload()
from kernelci.compiling import loading
scripts = []
for path in sys.argv[2:]:
    module = loading.load(Path(path))
    if hasattr(module, "tile_program"):
        scripts += [module.tile_program("bfloat16", 8, 4096), module.row_program("float16", 8)]
    else:
        scripts += [module.program(config, 8) for config in (module.LARGE, module.AMPERE)]
print("ANSWERS" + json.dumps([program.script() for program in scripts]))
"""


def unmarked(folder: Path, reference: str) -> Path:
    """The kernel without a trace of its marks."""
    own = ROOT / "kernels" / reference / "tilelang.py"
    text, marks = _MARK.subn("", _HELPER.sub("", own.read_text()))
    assert marks > 2
    assert "mark(" not in text
    path = folder / f"{reference}_unmarked.py"
    path.write_text(text)
    return path


def test_without_a_trace_the_program_has_no_marks(tmp_path: Path) -> None:
    files = [ROOT / f"kernels/{name}/tilelang.py" for name in MARKED]
    files += [unmarked(tmp_path, name) for name in MARKED]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", CHILD, str(tmp_path), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)
    assert "ANSWERS" in done.stdout, done.stderr[-3000:]
    scripts = json.loads(done.stdout.split("ANSWERS", 1)[1])
    assert 12 == len(scripts)
    assert scripts[6:] == scripts[:6]
    assert [] == [script for script in scripts if "KERNELCI" in script or len(script) < 500]


@pytest.fixture(scope="module")
def traced(build_all: Any) -> dict[str, Any]:
    cases = {
        ("softmax", "sm_80"): {"rows": 512, "cols": 4096, "dtype": "bfloat16"},
        ("rmsnorm", "sm_90a"): {"rows": 512, "cols": 4096, "dtype": "bfloat16"},
        ("matmul", "sm_90a"): {"m": 64, "n": 4096, "k": 4096, "dtype": "bfloat16"},
    }
    jobs = []
    for (name, target), case in cases.items():
        path = ROOT / f"kernels/{name}/tilelang.py"
        regions = parse(path.read_text()).regions
        job = {"file": str(path), "entry": name, "arguments": {}, "target": target, "case": case, "regions": regions}
        jobs.append(job)
    answers = build_all("tilelang", jobs)
    return {f"{name} {target}": answer for (name, target), answer in zip(cases, answers, strict=True)}


@pytest.mark.parametrize(("name", "marks"), [("softmax sm_80", 6), ("rmsnorm sm_90a", 6), ("matmul sm_90a", 8)])
def test_a_trace_build_reads_clocks_and_stores_records(traced: Any, name: str, marks: int) -> None:
    assert "" == traced[name]["error"], traced[name]["message"]
    (build,) = traced[name]["builds"]
    sass = build["files"]["sass"]
    assert 2 == len(re.findall(TIMER, sass))
    assert len(re.findall(CLOCK, sass)) >= marks + 2
    assert len(re.findall(STORE, sass)) >= marks


@pytest.mark.parametrize("name", ["softmax sm_80", "rmsnorm sm_90a"])
def test_load_ends_after_something_that_waits_for_what_was_loaded(traced: Any, name: str) -> None:
    """Arithmetic moves across a mark; threads that meet, and stores, do not."""
    (build,) = traced[name]["builds"]
    loading = build["files"]["sass"].partition("LDG")[2].partition(CLOCK)[0]
    assert re.search(r"BAR\.SYNC|STG", loading)


def test_a_pipelined_matmul_is_still_multiplied_by_consumers(traced: Any) -> None:
    (build,) = traced["matmul sm_90a"]["builds"]
    assert "HGMMA" in build["files"]["sass"]
    assert "UTMALDG" in build["files"]["sass"]
