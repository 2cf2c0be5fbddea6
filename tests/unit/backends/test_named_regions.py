"""Kernels that name their regions by their DSL's own means: without a trace they are as if they named none."""

import ast
import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelci.tracing import proton, records

from .conftest import example

ROOT = Path(__file__).parents[3]
CHILD = """
import ctypes, json, os, sys, types, warnings
from pathlib import Path
warnings.simplefilter("ignore")
name, cache, jobs = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
from kernelci import backends, gpus
backend = backends.get(name)
os.environ.update(backend.environment(cache))
backend.preload()
import torch
from kernelci.compiling import building, loading
from kernelci.tracing.prelude import Tracing
from kernelci.tracing.records import Layout
from kernelci.workbench import cubin, proton
layout = Layout(10, 100)
buffer = ctypes.create_string_buffer(layout.header(), layout.size)
class Host:
    def read(self, address, size):
        return ctypes.string_at(address, size)
    def write(self, address, data):
        ctypes.memmove(address, data, len(data))
def traced(regions):
    tracing = Tracing(ctypes.addressof(buffer), tuple(regions))
    return proton.traced(tracing, Host()) if name == "triton" else backend.traced(tracing)
def built(job):
    module = loading.load(Path(job["file"]))
    gpu = gpus.for_target(job["target"])
    case = types.SimpleNamespace(**job["case"], dtype=torch.bfloat16)
    spec = lambda shape: building.StandInSpec(tuple(shape), "bfloat16") if isinstance(shape, list) else shape
    values = {key: spec(shape) for key, shape in job["arguments"].items()}
    made = building.build(module, job["entry"], case, values, gpu, backend).builds[0]
    return {"sass": cubin.disassemble(made.files["cubin"]), "ptx": made.files["ptx"].decode(),
            "ttgir": made.files.get("ttgir", b"").decode(), "block": made.block}
answers = []
for job in jobs:
    if job["regions"]:
        with traced(job["regions"]):
            answers.append(built(job))
    else:
        answers.append(built(job))
print("ANSWERS" + json.dumps(answers))
"""
ROWS, COLS, SIZE = 64, 1000, 1024
CASES: dict[str, dict[str, Any]] = {
    "softmax": {"case": {"rows": ROWS, "cols": COLS}, "arguments": {"x": (ROWS, COLS), "y": (ROWS, COLS)}},
    "matmul": {
        "case": {"m": SIZE, "n": SIZE, "k": SIZE},
        "arguments": {"a": (SIZE, SIZE), "b": (SIZE, SIZE), "c": (SIZE, SIZE)},
    },
    "rmsnorm": {
        "case": {"rows": ROWS, "cols": COLS},
        "arguments": {
            **dict.fromkeys(("x", "residual", "y", "residual_out"), (ROWS, COLS)),
            "weight": (COLS,),
            "eps": 1e-6,
        },
    },
}
BUILDS = ("plain", "as it is", "traced")
REGIONS = ("load", "wait", "compute", "epilogue")
VECTORS = {"arguments": {"x": (SIZE,), "y": (SIZE,)}, "entry": "call"}
MORE = {"triton": {}, "cutedsl": {"ranges": {**VECTORS, "file": example("cutedsl_ranges.py")[0]}}}
Answers = dict[tuple[str, str], dict[str, Any]]


class _Unmarked(ast.NodeTransformer):
    """Takes the marks out of a kernel: Proton's scopes around statements, iket's calls between them."""

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        is_scope = ast.unparse(node.items[0].context_expr).startswith("pl.scope(")
        return node.body if is_scope else node

    def visit_Expr(self, node: ast.Expr) -> Any:
        is_mark = ast.unparse(node).startswith(("iket.range_", "pl.enable_semantic("))
        return None if is_mark else node


def _unmarked(kernel: Path, folder: Path) -> Path:
    text = kernel.read_text(encoding="utf-8")
    tree = ast.fix_missing_locations(_Unmarked().visit(ast.parse(text)))
    path = folder / f"{kernel.parent.name}_{kernel.name}"
    path.write_text(ast.unparse(tree), encoding="utf-8")
    assert not re.search(r"\b(iket|pl)\.", path.read_text())
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Answers]:
    """What a backend's kernels compile to, by name and build."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))  # all workers of a run share what one has built

    def make(backend: str) -> Answers:
        shared = tmp_path_factory.getbasetemp().parent / f"named-regions-{backend}-{run}.json"
        with open(shared, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read() or build(backend)
            file.truncate(0)
            file.write(text)
        keys = [*((name, build) for name in CASES for build in BUILDS), *((name, "traced") for name in MORE[backend])]
        return dict(zip(keys, json.loads(text), strict=True))

    def build(backend: str) -> str:
        folder = tmp_path_factory.mktemp(backend)
        jobs: list[dict[str, Any]] = []
        for name, case in CASES.items():
            kernel = ROOT / "kernels" / name / f"{backend}.py"
            job = {**case, "entry": name, "target": "sm_90a", "file": str(kernel), "regions": ()}
            jobs += [{**job, "file": str(_unmarked(kernel, folder))}, job, {**job, "regions": REGIONS}]
        jobs += [{**job, "target": "sm_90a", "case": {}, "regions": REGIONS} for job in MORE[backend].values()]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", CHILD, backend, str(folder), json.dumps(jobs)],
            capture_output=True, text=True, timeout=240, env=environment, cwd=folder, check=False,
        )  # fmt: skip
        assert "ANSWERS" in done.stdout, done.stderr[-3000:]
        return done.stdout.split("ANSWERS", 1)[1]

    return make


def _instructions(sass: str) -> list[str]:
    lines = [line for line in sass.splitlines() if re.search(r"/\*[0-9a-f]{4,}\*/", line)]
    return [re.sub(r"/\*[0-9a-f]+\*/", "", line).strip() for line in lines]


BOTH = [(backend, name) for backend in ("triton", "cutedsl") for name in CASES]


@pytest.mark.parametrize(("backend", "name"), BOTH)
def test_tracing_that_is_off_costs_nothing(made: Callable[[str], Answers], backend: str, name: str) -> None:
    answers = made(backend)
    plain = _instructions(answers[name, "plain"]["sass"])
    assert len(plain) > 100
    assert plain == _instructions(answers[name, "as it is"]["sass"])


@pytest.mark.parametrize(("backend", "name"), BOTH)
def test_a_trace_build_reads_clocks_and_stores_them(made: Callable[[str], Answers], backend: str, name: str) -> None:
    answers = made(backend)
    assert "CLOCK" not in answers[name, "as it is"]["sass"]
    sass = answers[name, "traced"]["sass"]
    assert sass.count("SR_CLOCKLO") >= 6  # three regions at least, begun and ended
    assert sass.count("SR_GLOBALTIMER") >= 2
    assert sass.count("STG.E") > answers[name, "as it is"]["sass"].count("STG.E") + 6


@pytest.mark.parametrize("backend", ["triton", "cutedsl"])
def test_a_traced_matmul_still_overlaps(made: Callable[[str], Answers], backend: str) -> None:
    """As many tensor core and bulk copy instructions, and the same waits for all but the newest product."""
    answers = made(backend)
    for word in (r"HGMMA\S*", r"UTMALDG\S*", r"WARPGROUP.DEPBAR.LE gsb0, 0x\d"):
        counts = [len(re.findall(word, answers["matmul", build]["sass"])) for build in ("as it is", "traced")]
        assert counts[0] == counts[1] > 0


def test_protons_scratch_memory_is_laid_out_as_it_is_read(made: Callable[[str], Answers]) -> None:
    ptx = made("triton")["softmax", "traced"]["ptx"]
    warps = made("triton")["softmax", "traced"]["block"][0] // 32

    base = re.search(r"st\.global\.b32\s+\[(%rd\d+)\], -559038737;", ptx)  # the preamble, first of all
    assert base is not None
    stored = {}
    for offset, value in re.findall(rf"st\.global\.b32\s+\[{base[1]}(?:\+(\d+))?\], (\S+);", ptx):
        stored.setdefault(int(offset or 0), value)
    sources = dict(re.findall(r"mov\.u(?:32|64)\s+(%r\d+|%rd\d+), (%smid|%globaltimer);", ptx)[::-1])
    assert {8: "%smid", 16: "%globaltimer", 24: "%globaltimer", 32: "%globaltimer"}.items() <= {
        offset: sources.get(value) for offset, value in stored.items()
    }.items()
    ring = proton.ring_events(100) * proton.EVENT_BYTES * warps
    assert str(ring) == stored[12]
    assert f"+{proton.HEAD_BYTES}], " in ptx  # the words that a warp recorded
    first = proton.HEAD_BYTES + 4 * warps
    assert re.search(rf"add\.s64\s+%rd\d+, %rd\d+, {first};", ptx)
    for constant in (2047, 1 << 23, -records.END):  # the clock's upper bits, the second scope, an end
        assert re.search(rf"(and|or)\.b32\s+%r\d+, %r\d+, {constant};", ptx), constant


def _marks(ptx: str) -> list[int]:
    return [int(mark) for mark in re.findall(r"\{low, high, (\d+), kernelci_number\}", ptx)]


def test_ranges_are_numbered_by_the_card(made: Callable[[str], Answers]) -> None:
    found = _marks(made("cutedsl")["softmax", "traced"]["ptx"])
    assert [0, records.END, 2, 2 | records.END, 3, 3 | records.END] == found


def test_ranges_with_tokens_and_names_of_their_own(made: Callable[[str], Answers]) -> None:
    """A token ends its range in the next iteration and after the loop; a name that the card lacks follows its names."""
    found = _marks(made("cutedsl")["ranges", "traced"]["ptx"])
    assert [2 | records.END, 0, records.END, 2, 2 | records.END, 4, 4 | records.END] == found
