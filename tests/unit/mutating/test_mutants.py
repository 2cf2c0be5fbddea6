"""Mutants: which changes there are, where, how they are numbered, chosen and shown."""

import ast
from pathlib import Path

import pytest

from kernelci import catalog, config
from kernelci.card import parse as parse_card
from kernelci.catalog import Kernel
from kernelci.errors import ConfigError
from kernelci.mutating.mutants import Mutant, chosen, diff, mutants

ROOT = Path(__file__).resolve().parents[3]
KERNELS = catalog.scan(ROOT, config.load(ROOT)).kernels

TRITON = '''\
@triton.jit
def double(x, y, size, BLOCK: tl.constexpr):
    """Twice: a < b is no code."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {line}


def entry(x, y):
    half = x.numel() // 2
    grid = (triton.cdiv(x.numel(), 64),)
    double[grid](x, y, x.numel(), 64)
'''
CUDA = """\
constexpr int TILE = 64;
template <typename T> __global__ void __launch_bounds__(TILE < 32 ? 32 : TILE)
twice(const float* x, float* y, long long size) {{
    {line}
}}
int host(int a, int b) {{ return a < b; }}
"""

PYTHON_CHANGES = [
    ("keep = at < size", "compare", "<", "<="),
    ("keep = at == size", "compare", "==", "!="),
    ("z = at + size", "arithmetic", "+", "-"),
    ("z += at", "arithmetic", "+=", "-="),
    ("z += at", "term", "+=", "="),
    ("z += at", "statement", "z += at", "pass"),
    ("keep = (a < b) & (c < d)", "logic", "&", "|"),
    ("keep = (a < b) & (c < d)", "mask", "(a < b) & (c < d)", "(a < b)"),
    ("keep = (a < b) & (c < d)", "mask", "(a < b) & (c < d)", "(c < d)"),
    ("z = a - b * c", "term", "a - b * c", "a"),
    ("z = a - b * c", "operands", "a - b * c", "(b * c) - a"),
    ("z = 7", "constant", "7", "8"),
    ("z = 1", "constant", "1", "0"),
    ("z = 0.0", "constant", "0.0", "0.001"),
    ("z = 0.5", "constant", "0.5", "1.0"),
    ("z = True", "constant", "True", "False"),
    ("z = -x", "sign", "-x", "x"),
    ('z = float("-inf")', "identity", 'float("-inf")', "0.0"),
    ("z = tl.load(p, mask=m, other=0.0)", "mask", "(p, mask=m, other=0.0)", "(p)"),
    ("z = tl.load(p, mask=m, other=0.0)", "other", "(p, mask=m, other=0.0)", "(p, mask=m)"),
    ("z = tl.load(p + at)", "index", "p + at", "p + at + 1"),
    ("z = a[:, None]", "index", ":, None", "None, :"),
    ("y[r, g] = x", "index", "g", "g + 1"),
    ("z = tl.max(x, axis=1)", "function", "max", "min"),
    ("z = tl.exp(x)", "function", "tl.exp(x)", "(x)"),
    ("z = tl.where(c, a, b)", "operands", "tl.where(c, a, b)", "tl.where(c, b, a)"),
    ("z = tl.cdiv(n, B)", "rounding", "tl.cdiv(n, B)", "((n) // (B))"),
    ("z = tl.dot(a, b, c)", "term", "(a, b, c)", "(a, b)"),
    ("z = x.to(tl.float32)", "dtype", "float32", "float16"),
    ("z = x.to(tl.float32)", "dtype", "x.to(tl.float32)", "x"),
    ("for i in range(0, n, B): pass", "loop", "n", "n - B"),
    ("for i in range(0, n, B): pass", "loop", "0", "0 + B"),
    ("for i in T.Pipelined(n, num_stages=3): pass", "loop", "n", "n - 1"),
    ("tl.debug_barrier()", "barrier", "tl.debug_barrier()", "pass"),
    ("T.clear(sums)", "statement", "T.clear(sums)", "pass"),
    ("if EXACT: pass", "branch", "EXACT", "not (EXACT)"),
]
CUDA_CHANGES = [
    ("if (at < size) y[at] = x[at];", "compare", "<", "<="),
    ("if (at < size) y[at] = x[at];", "branch", "at < size", "!(at < size)"),
    ("if (at < size) y[at] = x[at];", "mask", "at < size", "true"),
    ("if (at < size) y[at] = x[at];", "index", "at", "at + 1"),
    ("if (at < size) y[at] = x[at];", "statement", "y[at] = x[at];", ";"),
    ("bool keep = a < b && c < d;", "logic", "&&", "||"),
    ("float z = 2.0f;", "constant", "2.0f", "4.0f"),
    ("__syncthreads();", "barrier", "__syncthreads();", ";"),
    ("float z = fmaxf(a, b);", "function", "fmaxf", "fminf"),
    ("float z = fmaf(a, b, c);", "term", "fmaf(a, b, c)", "((a) * (b))"),
    ("const long long z = a;", "dtype", "long long", "int"),
    ("float z = a < b ? c : d;", "operands", "a < b ? c : d", "(a < b ? d : c)"),
    ("for (int i = 0; i < n; i++) f(i);", "loop", "n", "n - 1"),
    ("for (int i = 0; i < n; i += 4) f(i);", "loop", "0", "0 + 4"),
    (
        'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));',
        "rounding",
        "cvt.rn.f16.f32 %0, %1;",
        "cvt.rz.f16.f32 %0, %1;",
    ),
    ("float z = MINUS_INFINITY;", "identity", "MINUS_INFINITY", "-1e4f"),
]


def _kernel(folder: Path, name: str, code: str) -> Kernel:
    path = folder / name
    path.write_text(code, encoding="utf-8")
    return Kernel("op/name", path, None)


def _changes(found: tuple[Mutant, ...]) -> set[tuple[str, str, str]]:
    return {(mutant.operator, mutant.before, mutant.after) for mutant in found}


@pytest.mark.parametrize(("line", "operator", "before", "after"), PYTHON_CHANGES)
def test_python_change(tmp_path: Path, line: str, operator: str, before: str, after: str) -> None:
    found = mutants(_kernel(tmp_path, "kernel.py", TRITON.format(line=line)))
    assert (operator, before, after) in _changes(found)


@pytest.mark.parametrize(("line", "operator", "before", "after"), CUDA_CHANGES)
def test_cuda_change(tmp_path: Path, line: str, operator: str, before: str, after: str) -> None:
    found = mutants(_kernel(tmp_path, "kernel.cu", CUDA.format(line=line)))
    assert (operator, before, after) in _changes(found)


def test_only_device_code_and_the_grid_of_python_change(tmp_path: Path) -> None:
    found = mutants(_kernel(tmp_path, "kernel.py", TRITON.format(line="y = x")))
    assert {(4, True), (10, False)} == {(mutant.line, mutant.device) for mutant in found}


def test_a_grid_reaches_the_kernel_that_it_launches(tmp_path: Path) -> None:
    found = mutants(_kernel(tmp_path, "kernel.py", TRITON.format(line="y = x")))
    assert {"double"} == {mutant.reaches for mutant in found}


def test_only_device_code_of_cuda_changes(tmp_path: Path) -> None:
    found = mutants(_kernel(tmp_path, "kernel.cu", CUDA.format(line="y[0] = x[0] + 1.0f;")))
    assert {4} == {mutant.line for mutant in found}


def test_the_grid_of_a_prim_func_is_launch_arithmetic(tmp_path: Path) -> None:
    code = "@T.prim_func\ndef f(x):\n    with T.Kernel(T.ceildiv(n, 8)) as i:\n        x[i] = x[i] * 2.0\n"
    found = mutants(_kernel(tmp_path, "kernel.py", code))
    assert {(3, False), (4, True)} == {(mutant.line, mutant.device) for mutant in found}


def test_the_grid_of_a_launch_config_is_launch_arithmetic(tmp_path: Path) -> None:
    code = "def config_of(rows):\n    half = rows // 2\n    return LaunchConfig(grid=-(-rows // 4), block=(32, 1))\n"
    found = mutants(_kernel(tmp_path, "kernel.py", code))
    assert {(3, False)} == {(mutant.line, mutant.device) for mutant in found}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: str(kernel.name))
def test_mutants_are_distinct_and_keep_the_card(kernel: Kernel) -> None:
    sources = {path.name: path.read_bytes() for path in kernel.sources()}
    found = mutants(kernel)
    variants = [(mutant.file, mutant.applied(sources[mutant.file])) for mutant in found]
    assert len(variants) == len({*variants, *sources.items()}) - len(sources)
    assert {kernel.card} == {parse_card(code.decode()) for file, code in variants if file.endswith(".py")} | {
        kernel.card
    }


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: str(kernel.name))
def test_python_mutants_parse(kernel: Kernel) -> None:
    source = kernel.path.read_bytes()
    for mutant in mutants(kernel):
        if mutant.file.endswith(".py"):
            ast.parse(mutant.applied(source))


def test_numbers_follow_the_source(tmp_path: Path) -> None:
    found = mutants(_kernel(tmp_path, "kernel.py", TRITON.format(line="y = a < b")))
    assert list(range(1, len(found) + 1)) == [mutant.number for mutant in found]
    assert sorted(mutant.line for mutant in found) == [mutant.line for mutant in found]


def test_label(tmp_path: Path) -> None:
    found = mutants(_kernel(tmp_path, "kernel.py", "@triton.jit\ndef f(x):\n    y = x < 1\n"))
    assert "op/name#001 compare: < → <= line 3" == found[0].label


def test_long_changes_are_shown_where_they_differ(tmp_path: Path) -> None:
    line = "y = tl.load(pointer_to_something_long + offset_of_something_long, mask=m, other=0.0)"
    found = mutants(_kernel(tmp_path, "kernel.py", TRITON.format(line=line)))
    (other,) = (mutant for mutant in found if mutant.operator == "other")
    assert ("…ing_long, mask=m, other=0.0)", "…ing_long, mask=m)") == (other.before, other.after)


def test_diff(tmp_path: Path) -> None:
    kernel = _kernel(tmp_path, "kernel.py", "@triton.jit\ndef f(x):\n    y = x < 1\n    return y\n")
    expected = (
        "--- kernel.py\n+++ kernel.py (op/name#001)\n@@ -2,3 +2,3 @@\n"
        " def f(x):\n-    y = x < 1\n+    y = x <= 1\n     return y\n"
    )
    assert expected == diff(mutants(kernel)[0], kernel.path.read_bytes())


@pytest.fixture(scope="module")
def softmax() -> tuple[Mutant, ...]:
    return mutants(next(kernel for kernel in KERNELS if kernel.name == "softmax/triton"))


def test_limit_spreads_over_functions_and_operators(softmax: tuple[Mutant, ...]) -> None:
    groups = {(mutant.function, mutant.operator) for mutant in softmax}
    picked = chosen(softmax, (), len(groups), "0")
    assert groups == {(mutant.function, mutant.operator) for mutant in picked}


def test_limit_is_the_same_for_a_seed(softmax: tuple[Mutant, ...]) -> None:
    assert chosen(softmax, (), 20, "0") == chosen(softmax, (), 20, "0")
    assert chosen(softmax, (), 20, "0") != chosen(softmax, (), 20, "1")


def test_no_limit_is_all(softmax: tuple[Mutant, ...]) -> None:
    assert softmax == chosen(softmax, (), 0, "0")


@pytest.mark.parametrize("name", ["softmax/triton#017", "017", "17"])
def test_only(softmax: tuple[Mutant, ...], name: str) -> None:
    assert (softmax[16],) == chosen(softmax, (name,), 0, "0")


@pytest.mark.parametrize("name", ["99999", "rmsnorm/triton#017", "first"])
def test_unknown_id_is_refused(softmax: tuple[Mutant, ...], name: str) -> None:
    with pytest.raises(ConfigError, match="no mutant"):
        chosen(softmax, (name,), 0, "0")
