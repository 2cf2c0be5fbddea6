"""One kernel of each DSL made slower on purpose, for real: SLOWER, and the first line of its dump names the cause."""

import shutil
from pathlib import Path

import pytest

from kernelci import climbing
from kernelci.model import KernelReport, Row
from kernelci.reasons import Outcome

ROOT = Path(__file__).resolve().parents[2]
# Kernel, a case that shows it, what stands in its file and what takes its place, and the cause.
SLOWER = {
    "softmax/triton": (
        "65536x2048-bf16",
        'do_not_specialize=["rows"]',
        'do_not_specialize=["rows", "cols"]',
        "global loads 128 -> 16 bits wide",
    ),
    "matmul/cuda": (
        "4096x4096x4096-bf16",
        "LARGE = Variant(bm=128, bn=256,",
        "LARGE = Variant(bm=128, bn=32,",
        "HGMMA 64x256x16 -> 64x32x16: a smaller tile",
    ),
    "matmul/tilelang": (
        "4096x4096x4096-bf16",
        "LARGE = Config(128, 256,",
        "LARGE = Config(128, 64,",
        "HGMMA 64x256x16 -> 64x64x16: a smaller tile",
    ),
    "softmax/cutedsl": (
        "65536x2048-bf16",
        "vectors // 32, 1), ELEMENTS // vec",
        "vectors // 4, 1), 512 // vec",
        "spills: 0 -> ",
    ),
}
pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module", params=SLOWER)
def slower(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KernelReport:
    """One of them against the kernel as it is."""
    name = str(request.param)
    case, old, new, _ = SLOWER[name]
    top = tmp_path_factory.mktemp("causes")
    for side in ("base", "head"):
        for folder in ("kernels", "references"):
            shutil.copytree(ROOT / folder, top / side / folder)
    file = top / "head" / "kernels" / f"{name}.py"
    text = file.read_text()
    assert 1 == text.count(old)
    file.write_text(text.replace(old, new))
    rungs = ("benchmark", "dump")
    report, _ = climbing.climb(
        top / "head", rungs, kernels=(name,), case=case, base_folder=top / "base", out=top / "out"
    )
    return report.kernels[0]


def _rows(kernel: KernelReport, rung: str, outcome: Outcome) -> tuple[Row, ...]:
    found = kernel.rung(rung)
    assert found is not None
    assert outcome is found.outcome, found.finding
    return found.rows


def test_it_is_slower(slower: KernelReport) -> None:
    assert ["SLOWER"] == [str(row.verdict) for row in _rows(slower, "benchmark", Outcome.FAILED)]


def test_the_first_line_names_the_cause(slower: KernelReport) -> None:
    cause = f"likely slower: {SLOWER[slower.name][3]}"
    lines = [row.notes[0] for row in _rows(slower, "dump", Outcome.PASSED) if row.notes]
    assert any(line.startswith(cause) for line in lines), lines
