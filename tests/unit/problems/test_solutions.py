"""A flashinfer-bench solution as a kernel: its backend, its stub, and what is refused."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelci import catalog, problems
from kernelci.config import Config
from kernelci.problems import definitions
from kernelci.problems.definitions import STUB, Definition, Malformed, Solution

DEFINITION = msgspec.convert(
    {
        "name": "copy",
        "axes": {"n": {"type": "var"}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "reference": "def run(x): return x",
    },
    Definition,
)


def _solution(content: str = "def run(x): return x", path: str = "main.py", **spec: Any) -> Solution:
    plain = {"entry_point": f"{path}::run", "language": "python", **spec}
    values = {"name": "one", "definition": "copy", "spec": plain, "sources": [{"path": path, "content": content}]}
    return msgspec.convert(values, Solution)


@pytest.mark.parametrize(
    ("solution", "backend"),
    [
        (_solution(language="triton"), "triton"),
        (_solution("import triton"), "triton"),
        (_solution(), "torch"),
        (_solution(language="", languages=["cute_dsl"]), "cutedsl"),
        (_solution(path="k.cu", language="cuda"), "torch"),
    ],
)
def test_backend(solution: Solution, backend: str) -> None:
    assert backend == solution.backend


def test_outputs_come_last_where_they_are_passed() -> None:
    stub = _solution().files(DEFINITION)[STUB].decode()
    assert f"def {problems.ENTRY}(x, y):\n    return _run(x, y)" in stub


def test_outputs_that_are_returned() -> None:
    stub = _solution(destination_passing_style=False).files(DEFINITION)[STUB].decode()
    assert f"def {problems.ENTRY}(x):\n    return _run(x)" in stub


def test_cuda_is_built_by_torch() -> None:
    stub = _solution(path="src/k.cu", language="cuda").files(DEFINITION)[STUB].decode()
    assert "for name in ['k.cu']" in stub


@pytest.mark.parametrize(
    ("content", "told", "binding"),
    [
        ("", None, "torch"),
        ("#include <tvm/ffi/function.h>", None, "tvm-ffi"),
        ("", "tvm-ffi", "tvm-ffi"),
        ("#include <tvm/ffi/function.h>", "torch", "torch"),
    ],
)
def test_binding(content: str, told: str | None, binding: str) -> None:
    assert binding == _solution(content, path="k.cu", language="cuda", binding=told).binding


def test_tvm_ffi_builds_what_is_included_beside_it() -> None:
    stub = _solution(path="src/k.cu", language="cuda", binding="tvm-ffi").files(DEFINITION)[STUB].decode()
    assert "sources=[str(KEPT / name) for name in ['k.cu']], extra_include_paths=[str(KEPT)])" in stub


@pytest.mark.parametrize(
    ("solution", "said"),
    [
        (_solution(language="fortran"), "language 'fortran' is not supported"),
        (_solution(entry_point="other.py::run"), "names no function"),
        (_solution(path="k.cu", language="cuda", binding="pybind"), "binding 'pybind' is not supported"),
    ],
)
def test_a_solution_that_is_refused(solution: Solution, said: str) -> None:
    with pytest.raises(Malformed, match=said):
        assert solution.backend + str(solution.files(DEFINITION))


def test_expressions_of_sizes() -> None:
    axes = {"a": {"type": "var"}, "b": {"type": "expr", "expression": "(a + 1) * 2 // 3"}}
    found = msgspec.structs.replace(DEFINITION, axes=msgspec.convert(axes, dict[str, definitions.Axis]))
    assert {"a": 5, "b": 4} == found.sizes({"a": 5})


@pytest.mark.parametrize("expression", ["__import__('os')", "a.b", "c", "'x'"])
def test_expressions_of_anything_else(expression: str) -> None:
    axes = {"a": {"type": "var"}, "b": {"type": "expr", "expression": expression}}
    found = msgspec.structs.replace(DEFINITION, axes=msgspec.convert(axes, dict[str, definitions.Axis]))
    with pytest.raises(Malformed, match="is no size"):
        found.sizes({"a": 5})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of one definition and one solution."""
    _write(tmp_path / "references" / "activation" / "file.json", msgspec.to_builtins(DEFINITION))
    _write(tmp_path / "kernels" / "copy" / "one.json", msgspec.to_builtins(_solution()))
    _write(tmp_path / "kernels" / "copy" / "notes.json", {"about": "nothing"})
    return tmp_path


def _write(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def test_the_catalog_finds_both(root: Path) -> None:
    found = catalog.scan(root, Config())
    assert (["copy"], ["copy/one"]) == ([*found.references], [kernel.name for kernel in found.kernels])


def test_a_solution_that_can_not_be_read_is_a_kernel_with_an_error(root: Path) -> None:
    _write(root / "kernels" / "copy" / "two.json", {"definition": "copy", "spec": {}, "sources": []})
    found = catalog.scan(root, Config()).select(["copy/two"])
    assert "required field" in found[0].error
