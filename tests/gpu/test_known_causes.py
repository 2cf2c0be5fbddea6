"""One kernel of each DSL made slower on purpose, for real: SLOWER, and the first line of its dump names the cause."""

import shutil
from pathlib import Path

import pytest

from kernelci import climbing
from kernelci.model import KernelReport, RungResult
from kernelci.reasons import Outcome

ROOT = Path(__file__).resolve().parents[2]
# Kernel, its file, what stands there and what takes its place, and the cause.
SLOWER = {
    "softmax/triton": (
        "softmax/triton.py",
        'do_not_specialize=["rows"]',
        'do_not_specialize=["rows", "cols"]',
        "global loads 128 -> 16 bits wide",
    ),
    "matmul/cuda": (
        "matmul/cuda.py",
        "LARGE = Variant(bm=128, bn=256,",
        "LARGE = Variant(bm=128, bn=32,",
        "HGMMA 64x256x16 -> 64x32x16: a smaller tile",
    ),
    "matmul/tilelang": (
        "matmul/tilelang.py",
        "LARGE = Config(128, 256,",
        "LARGE = Config(128, 64,",
        "HGMMA 64x256x16 -> 64x64x16: a smaller tile",
    ),
    "softmax/cutedsl": (
        "softmax/cutedsl.py",
        "vectors // 32, 1), ELEMENTS // vec",
        "vectors // 4, 1), 512 // vec",
        "spills: 0 -> ",
    ),
}
pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelReport]:
    """All of them in one run against the kernels as they are."""
    top = tmp_path_factory.mktemp("causes")
    for side in ("base", "head"):
        for folder in ("kernels", "references"):
            shutil.copytree(ROOT / folder, top / side / folder)
    for path, old, new, _ in SLOWER.values():
        file = top / "head" / "kernels" / path
        text = file.read_text()
        assert 1 == text.count(old), path
        file.write_text(text.replace(old, new))
    report, _ = climbing.climb(
        top / "head", ("benchmark", "dump"), kernels=tuple(SLOWER), base_folder=top / "base", out=top / "out"
    )
    return {kernel.name: kernel for kernel in report.kernels}


def _rung(run: dict[str, KernelReport], name: str, rung: str) -> RungResult:
    found = run[name].rung(rung)
    assert found is not None
    assert Outcome.PASSED is found.outcome, found.finding
    return found


@pytest.mark.parametrize("name", SLOWER)
def test_it_is_slower_and_never_faster(run: dict[str, KernelReport], name: str) -> None:
    verdicts = {str(row.verdict) for row in _rung(run, name, "benchmark").rows}
    assert ({"SLOWER"}, set()) == (verdicts & {"SLOWER"}, verdicts & {"FASTER"})


@pytest.mark.parametrize("name", SLOWER)
def test_the_first_line_names_the_cause(run: dict[str, KernelReport], name: str) -> None:
    lines = [row.notes[0] for row in _rung(run, name, "dump").rows if row.notes]
    assert any(line.startswith(f"likely slower: {SLOWER[name][3]}") for line in lines), lines
