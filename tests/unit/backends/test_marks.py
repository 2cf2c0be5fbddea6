"""Marks of regions in CUDA C++ and TileLang, compiled for real: nothing where tracing is off, clocks and stores where
it is on."""

import re
from pathlib import Path
from typing import Any

import pytest

from kernelci.card import parse
from kernelci.tracing import records

ROOT = Path(__file__).parents[3]
# The lines and the block of a `.cu` that only a trace needs.
_STUB = re.compile(r"#ifndef KERNELCI_TRACE.*?#endif\n\n", re.DOTALL)
_MARK = re.compile(r"^ *KERNELCI_\w+\(\w*\);.*\n", re.MULTILINE)
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+([^;]*;)")
CLOCK, TIMER, STORE = "CS2R[.0-9]* R[0-9]+, SR_CLOCKLO", "SR_GLOBALTIMERLO", r"STG\.E\.128"
HEADER = ("magic", "version", "tracks", "events", "claimed", "displaced", "missed")  # words of 4 bytes
SOFTMAX = {"rows": 512, "cols": 4096, "dtype": "bfloat16"}
RMSNORM = {"rows": 512, "cols": 4096, "dtype": "bfloat16"}
MATMUL = {"m": 64, "n": 4096, "k": 4096, "dtype": "bfloat16"}
LAYOUT = """
using namespace kernelci_trace;
#define AT(what, field, offset) static_assert(__builtin_offsetof(what, field) == offset, #field);
{asserts}
extern "C" __global__ void empty() {{ KERNELCI_TRACE_KERNEL(); KERNELCI_BEGIN(load); KERNELCI_END(load); }}
"""

BROKEN = """extern "C" __global__ void empty() {
KERNELCI_TRACE_KERNEL();
KERNELCI_BEGIN(nothing);
}
"""


def job(path: Path, entry: str, target: str, case: dict[str, Any], traced: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"file": str(path), "entry": entry, "arguments": {}, "target": target, "case": case}
    return found | {"regions": parse(path.read_text()).regions if traced else None}


def instructions(answer: dict[str, Any]) -> list[str]:
    assert "" == answer["error"], answer["message"]
    (build,) = answer["builds"]
    return _INSTRUCTION.findall(build["files"]["sass"])


def count(pattern: str, code: list[str]) -> int:
    return sum(re.search(pattern, line) is not None for line in code)


def unmarked(folder: Path, reference: str) -> Path:
    """The CUDA C++ kernel without a trace of its marks."""
    own = ROOT / "kernels" / reference / "cuda.cu"
    text, marks = _MARK.subn("", _STUB.sub("", own.read_text()))
    assert marks > 6
    assert "KERNELCI" not in text
    (folder / reference).mkdir()
    (folder / reference / "cuda.cu").write_text(text)
    (folder / reference / "cuda.py").write_text(own.with_suffix(".py").read_text())
    return folder / reference / "cuda.py"


@pytest.fixture(scope="module")
def cuda(build_all: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("unmarked")
    kernels = ROOT / "kernels"
    layout = folder / "layout.py"
    layout.write_text(_layout_kernel())
    broken = folder / "broken.py"
    broken.write_text(kernel_of(BROKEN, "broken.cu"))
    streamed = SOFTMAX | {"cols": 2**18}
    jobs = {
        "softmax, unmarked": job(unmarked(folder, "softmax"), "softmax", "sm_90a", SOFTMAX, False),
        "softmax, off": job(kernels / "softmax/cuda.py", "softmax", "sm_90a", SOFTMAX, False),
        "softmax, on": job(kernels / "softmax/cuda.py", "softmax", "sm_90a", SOFTMAX, True),
        "softmax, on, sm_80": job(kernels / "softmax/cuda.py", "softmax", "sm_80", SOFTMAX, True),
        "softmax of long rows, on": job(kernels / "softmax/cuda.py", "softmax", "sm_80", streamed, True),
        "matmul, unmarked": job(unmarked(folder, "matmul"), "matmul", "sm_90a", MATMUL, False),
        "matmul, off": job(kernels / "matmul/cuda.py", "matmul", "sm_90a", MATMUL, False),
        "matmul, on": job(kernels / "matmul/cuda.py", "matmul", "sm_90a", MATMUL, True),
        "rmsnorm, unmarked": job(unmarked(folder, "rmsnorm"), "rmsnorm", "sm_90a", RMSNORM, False),
        "rmsnorm, off": job(kernels / "rmsnorm/cuda.py", "rmsnorm", "sm_90a", RMSNORM, False),
        "rmsnorm, on": job(kernels / "rmsnorm/cuda.py", "rmsnorm", "sm_90a", RMSNORM, True),
        "rmsnorm of long rows, on": job(kernels / "rmsnorm/cuda.py", "rmsnorm", "sm_80", streamed, True),
        "unknown region": job(broken, "f", "sm_90a", {}, False) | {"regions": ["load"]},
        "layout": job(layout, "f", "sm_90a", {}, False) | {"regions": ["load"]},
    }
    return dict(zip(jobs, build_all("cuda", list(jobs.values())), strict=True))


def _layout_kernel() -> str:
    """A kernel that compiles only where kernelci_trace.cuh and the reader agree on the layout."""
    import numpy as np

    track, record = (np.dtype(kind).fields or {} for kind in (records._TRACK, records._RECORD))
    asserts = [f"AT(Track, {name}, {field[1]})" for name, field in track.items()]
    asserts += [f"AT(Record, {name}, {field[1]})" for name, field in record.items()]
    asserts += [f"AT(Header, {name}, {4 * at})" for at, name in enumerate(HEADER)]
    return kernel_of(LAYOUT.format(asserts="\n".join(asserts)))


def kernel_of(source: str, name: str = "kernel.cu") -> str:
    """A kernel file that compiles this CUDA C++."""
    return f"""
from cuda.core import Program, ProgramOptions
def compile(case, target):
    yield Program({source!r}, "c++", ProgramOptions(name={name!r}, arch=target, std="c++17")).compile("cubin")
"""


@pytest.mark.parametrize("reference", ["softmax", "matmul", "rmsnorm"])
def test_tracing_that_is_off_costs_nothing(cuda: Any, reference: str) -> None:
    assert instructions(cuda[f"{reference}, unmarked"]) == instructions(cuda[f"{reference}, off"])


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("softmax, on", 6),
        ("softmax, on, sm_80", 6),
        ("softmax of long rows, on", 8),
        ("matmul, on", 8),
        ("rmsnorm, on", 6),
        ("rmsnorm of long rows, on", 6),
    ],
)
def test_tracing_that_is_on_reads_clocks_and_stores_records(cuda: Any, name: str, marks: int) -> None:
    code = instructions(cuda[name])
    assert 2 == count(TIMER, code)
    assert count(CLOCK, code) >= marks + 2  # and both ends of the track
    assert count(STORE, code) >= marks


def test_a_trace_build_of_wgmma_still_overlaps_its_multiplications(cuda: Any) -> None:
    on, off = instructions(cuda["matmul, on"]), instructions(cuda["matmul, off"])
    assert [count("HGMMA", off), count("WARPGROUP.DEPBAR", off)] == [
        count("HGMMA", on),
        count("WARPGROUP.DEPBAR", on),
    ]


def test_the_header_and_the_reader_agree_on_the_layout(cuda: Any) -> None:
    assert 4 <= count(CLOCK, instructions(cuda["layout"]))


def test_lines_of_a_traced_source_are_its_own(cuda: Any) -> None:
    answer = cuda["unknown region"]
    assert ("CompileFailed", "broken.cu", 3) == (answer["error"], answer["file"], answer["line"])
    assert "KERNELCI_REGION_nothing" in answer["message"]
