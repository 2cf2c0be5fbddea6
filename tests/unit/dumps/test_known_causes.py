"""Kernels of all four DSLs made slower in a known way: the first line of each row names it. Compiled, never run."""

from pathlib import Path

import pytest

from .conftest import Compare, Edits

slow = pytest.mark.slow
DOT = ("tl.dot(x, y, accumulator, input", "tl.dot(x.to(tl.float32), y.to(tl.float32), accumulator, input")
GENERIC, MEDIUM = "GENERIC = Config(128, 128, 64, 3, 8)", "MEDIUM = Config(128, 128, 64, 4, 8)"
NO_WGMMA = "(float (&d)[128], uint64 a, uint64 b, int accumulate)"
NO_GEMM = """for d in T.serial(tile_k):
                    for i, j in T.Parallel(tile_m, tile_n):
                        sums[i, j] += T.cast(left[i, d], "float32") * T.cast(right[j, d], "float32")
"""
WGMMA_CALLS = ("fence()", "commit_group()", "wait_group(0)", "wait_group(1)")
BOUNDS = "__launch_bounds__(THREADS < 128 ? 128 : THREADS)"
VERSIONS = [
    pytest.param(
        *("softmax/triton", "sm_90a", [("num_warps=warps)", "num_warps=warps, maxnreg=24)")]),
        "spills: 0 -> 16 bytes by 24 registers (base: 32)",
        id="triton-spills",
    ),
    pytest.param(
        *("softmax/triton", "sm_90a", [('do_not_specialize=["rows"]', 'do_not_specialize=["rows", "cols"]')]),
        "global loads 128 -> 16 bits wide",
        id="triton-vectors",
    ),
    pytest.param(
        *("matmul/triton", "sm_80", [(GENERIC, GENERIC.replace("3, 8", "1, 8"))]), "stages 3 -> 1", id="triton-stages",
    ),
    pytest.param(
        *("matmul/triton", "sm_80", [DOT, (GENERIC, GENERIC.replace("64, 3", "32, 2"))]),
        "tensor cores: HMMA -> none", id="triton-tensor-cores", marks=slow,
    ),
    pytest.param(
        *("matmul/triton", "sm_90a", [(MEDIUM, MEDIUM.replace("128, 128", "32, 128"))]),
        "HGMMA -> HMMA", id="triton-wgmma", marks=slow,
    ),
    pytest.param(
        *("matmul/triton", "sm_90a", [(MEDIUM, MEDIUM.replace("128, 128", "64, 64"))]),
        "HGMMA 64x128x16 -> 64x32x16: a smaller tile", id="triton-tile", marks=slow,
    ),
    pytest.param(
        *("softmax/cuda", "sm_90a", [("width = 16 // dtype", "width = 4 // dtype")]),
        "global loads 128 -> 32 bits wide", id="cuda-vectors", marks=slow,
    ),
    pytest.param(
        *("softmax/cuda", "sm_90a", [(BOUNDS, "__launch_bounds__(1024, 2)")]),
        "spills: 0 -> ", id="cuda-spills", marks=slow,
    ),
    pytest.param(
        *("matmul/cuda", "sm_90a", [("LARGE = Variant(bm=128, bn=256,", "LARGE = Variant(bm=128, bn=32,")]),
        "HGMMA 64x256x16 -> 64x32x16: a smaller tile", id="cuda-tile", marks=slow,
    ),
    pytest.param(
        *("matmul/cuda", "sm_90a", [("bn=256, stages=4", "bn=256, stages=2")]),
        "stages 4 -> 2", id="cuda-stages", marks=slow,
    ),
    pytest.param(
        *("matmul/cuda", "sm_90a", [(
            f"void wgmma{NO_WGMMA} {{",
            f"void wgmma{NO_WGMMA} {{ for (int i = 0; i < 128; i++) d[i] = d[i] * float(a + i) + float(b); }}\n"
            f"__device__ void unused{NO_WGMMA} {{",
        ), *((f'asm volatile("wgmma.{name}', f'asm volatile("// {name}') for name in ("fence", "commit", "wait"))]),
        "tensor cores: HGMMA -> none", id="cuda-tensor-cores", marks=slow,
    ),
    pytest.param(
        *("softmax/tilelang", "sm_90a", [("VECTOR_BYTES = 16", "VECTOR_BYTES = 4")]),
        "global loads 128 -> 32 bits wide", id="tilelang-vectors", marks=slow,
    ),
    pytest.param(
        *("softmax/tilelang", "sm_90a", [("TILE = 2048 ", "TILE = 32768 ")]),
        "spills: 0 -> ", id="tilelang-spills", marks=slow,
    ),
    pytest.param(
        *("softmax/cutedsl", "sm_90a", [("vectors // 32, 1), ELEMENTS // vec", "vectors // 4, 1), 512 // vec")]),
        "spills: 0 -> ", id="cutedsl-spills", marks=slow,
    ),
    pytest.param(
        *("matmul/tilelang", "sm_80", [(
            "T.gemm(left, right, sums, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)", NO_GEMM
        )]),
        "tensor cores: HMMA -> none", id="tilelang-tensor-cores", marks=slow,
    ),
    pytest.param(
        *("matmul/cutedsl", "sm_90a", [("groups=1, stages=12", "groups=1, stages=6")]),
        "shared memory 196800 -> 98400 bytes: fewer stages or a smaller tile", id="cutedsl-stages", marks=slow,
    ),
    pytest.param(
        *("matmul/cutedsl", "sm_90a", [("SMALL = Plan(64, 64,", "SMALL = Plan(64, 16,")]),
        "HGMMA 64x64x16 -> 64x16x16: a smaller tile", id="cutedsl-tile", marks=slow,
    ),
    pytest.param(
        *("matmul/cutedsl", "sm_90a", [(
            "cute.gemm(mma, acc, a[None, None, k, stage], b[None, None, k, stage], acc)",
            "acc.store(acc.load() * 1.5 + 0.5)",
        ), *((f"warpgroup.{call}", "cute.arch.sync_warp()") for call in WGMMA_CALLS)]),
        "tensor cores: HGMMA -> none", id="cutedsl-tensor-cores", marks=slow,
    ),
    pytest.param(
        *("matmul/tilelang", "sm_90a", [("LARGE = Config(128, 256,", "LARGE = Config(128, 64,")]),
        "HGMMA 64x256x16 -> 64x64x16: a smaller tile", id="tilelang-tile", marks=slow,
    ),
    pytest.param(
        *("matmul/tilelang", "sm_80", [("AMPERE = Config(128, 128, 32, 2", "AMPERE = Config(128, 128, 32, 1")]),
        "shared memory 32768 -> 16384 bytes: fewer stages or a smaller tile", id="tilelang-stages", marks=slow,
    ),
    pytest.param(
        *("softmax/cutedsl", "sm_90a", [("vec = 16 // width if", "vec = 4 // width if")]),
        "global loads 128 -> 32 bits wide", id="cutedsl-vectors", marks=slow,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "target", "edits", "expected"), VERSIONS)
def test_first_line_names_the_cause(compare: Compare, kernel: str, target: str, edits: Edits, expected: str) -> None:
    row = next(row for row in compare(kernel, target, edits).rows if row.case.endswith("bf16"))
    print(row.notes[:3])
    assert row.notes[0].startswith(f"likely slower: {expected}")


def test_the_same_kernel_is_the_same_and_leaves_no_difference(compare: Compare) -> None:
    found = compare("softmax/triton", "sm_80", ())
    assert {("the same machine code",)} == {row.notes for row in found.rows}
    assert [] == [artifact.path for artifact in found.artifacts if artifact.path.endswith(".diff")]


def test_a_difference_is_left_as_an_artifact_with_source_lines(compare: Compare, tmp_path: Path) -> None:
    found = compare("softmax/triton", "sm_80", [("tl.max(values, axis=1)", "tl.min(values, axis=1)")])
    diffs = [artifact for artifact in found.artifacts if artifact.path.endswith(".sass.diff")]
    assert len(found.rows) == len(diffs)
    text = (tmp_path / "out" / diffs[0].path).read_text()
    assert "// triton.py:" in text or "// standard.py:" in text
