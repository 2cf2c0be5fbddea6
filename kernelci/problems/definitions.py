"""flashinfer-bench's definitions, workloads and solutions, and SOL-ExecBench's variant of them, as their JSON says.

Read as text by the catalog; nothing here runs code of theirs.
"""

import ast
import json
import keyword
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from kernelci.problems import ENTRY, TORCH, defined
from kernelci.reference import Case

STUB = "kernelci_entry_of_solution.py"
_LANGUAGES = {
    "triton": "triton", "tilelang": "tilelang", "cuda": TORCH, "cpp": TORCH, "cuda_cpp": TORCH, "cutlass": TORCH,
    "cute_dsl": "cutedsl", "pytorch": "", "python": "",
}  # fmt: skip
_COMPILED = (".cu", ".cpp", ".cc")
TVM_FFI = "tvm-ffi"
# What builds a compiled solution's files {sources} and gives its functions, for each way in which C++ meets Python.
_BUILDS = {
    TORCH: "from torch.utils.cpp_extension import load\n\n_built = load('kernelci_solution', {sources})\n",
    TVM_FFI: "import tvm_ffi\nimport tvm_ffi.cpp\n\n"
    "_library = tvm_ffi.cpp.build('kernelci_solution', sources={sources}, extra_include_paths=[str(KEPT)])\n"
    "_built = tvm_ffi.load_module(_library)\n",
}
# A compiled solution's files lie in the cache, as old as what is built of them: else each process would build anew.
_KEEPING = """import os

KEPT = Path(os.environ["TORCH_EXTENSIONS_DIR"]).parent / "sources"
KEPT.mkdir(parents=True, exist_ok=True)
for _name in {names!r}:
    if not (KEPT / _name).is_file() or (KEPT / _name).read_bytes() != (HERE / _name).read_bytes():
        (KEPT / _name).write_bytes((HERE / _name).read_bytes())
"""
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}  # fmt: skip


Record = TypeVar("Record")


class Malformed(Exception):
    """A file that is not what it claims to be; the text says how."""


class Axis(Struct, frozen=True):
    """A size: fixed, given by each workload, or computed from others."""

    type: Literal["const", "var", "expr"]
    value: int = 0
    expression: str = ""


class Tensor(Struct, frozen=True):
    """Shape in names of axes, None for a number; and the dtype."""

    shape: tuple[str, ...] | None
    dtype: str


class Definition(Struct, frozen=True):
    """What is to be computed: `reference` is Python code with a function `run`."""

    name: str
    axes: dict[str, Axis]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    reference: str
    op_type: str = ""
    custom_inputs_entrypoint: str | None = None

    def sizes(self, given: Mapping[str, int]) -> dict[str, int]:
        """Every axis' size where a workload gives these. Raises Malformed."""
        found = {name: axis.value for name, axis in self.axes.items() if axis.type == "const"} | dict(given)
        for name, axis in self.axes.items():
            if axis.type == "expr":
                found[name] = int(_computed(ast.parse(axis.expression, mode="eval").body, found))
        missing = self.axes.keys() - found
        if missing:
            raise Malformed(f"a workload gives no size for the axis {sorted(missing)[0]}")
        return found


class Given(Struct, frozen=True):
    """Where a workload's input comes from."""

    type: Literal["random", "scalar", "safetensors", "custom"]
    value: int | float | bool | None = None
    path: str = ""
    tensor_key: str = ""


class Tolerance(Struct, frozen=True):
    """What a workload allows: share of elements within |error| ≤ max_atol + max_rtol · |true|, and a cap for all."""

    max_atol: float = 1e-2
    max_rtol: float = 1e-2
    required_matched_ratio: float = 0.99
    max_error_cap: float | None = None


class Workload(Struct, frozen=True):
    """Sizes of the variable axes, and inputs."""

    uuid: str
    axes: dict[str, int]
    inputs: dict[str, Given]
    tolerance: Tolerance | None = None


class Line(Struct, frozen=True):
    """A line of a trace file."""

    workload: Workload


class File(Struct, frozen=True):
    """One file of a solution."""

    path: str
    content: str


class Spec(Struct, frozen=True):
    """How a solution is built and called."""

    entry_point: str
    language: str = ""
    languages: tuple[str, ...] = ()
    destination_passing_style: bool = True
    binding: str | None = None


class Solution(Struct, frozen=True):
    """A kernel in a JSON file."""

    name: str
    definition: str
    spec: Spec
    sources: tuple[File, ...]

    @property
    def backend(self) -> str:
        """The backend of its language, or for Python of what it imports. Raises Malformed."""
        for language in (self.spec.language, *self.spec.languages):
            if language and language not in _LANGUAGES:
                raise Malformed(f"language {language!r} is not supported; known are {', '.join(_LANGUAGES)}")
            if _LANGUAGES.get(language):
                return _LANGUAGES[language]
        return defined("\n".join(one.content for one in self.sources if one.path.endswith(".py"))).backend

    @property
    def binding(self) -> str:
        """How C++ and CUDA meet Python: as told, else by what the sources include. Raises Malformed."""
        if self.spec.binding not in (None, *_BUILDS):
            raise Malformed(f"binding {self.spec.binding!r} is not supported; known are {', '.join(_BUILDS)}")
        includes = any("tvm/ffi/" in one.content for one in self.sources)
        return self.spec.binding or (TVM_FFI if includes else TORCH)

    @property
    def entry(self) -> tuple[str, str]:
        """File and function. Raises Malformed."""
        path, _, function = self.spec.entry_point.partition("::")
        if not function.isidentifier() or path not in {one.path for one in self.sources}:
            raise Malformed(f"entry_point {self.spec.entry_point!r} names no function in one of the sources")
        return PurePosixPath(path).name, function

    def files(self, definition: Definition) -> dict[str, bytes]:
        """Its sources by their bare names, and a stub that calls it with inputs (and outputs) by name."""
        names = [PurePosixPath(one.path).name for one in self.sources]
        if len({*names, STUB}) != len(names) + 1:
            raise Malformed("two sources of one file name")
        found = {name: one.content.encode() for name, one in zip(names, self.sources, strict=True)}
        return found | {STUB: _stub(self, definition, names).encode()}


def _stub(solution: Solution, definition: Definition, names: list[str]) -> str:
    file, function = solution.entry
    spec = solution.spec
    taken = [*definition.inputs, *(definition.outputs if spec.destination_passing_style else ())]
    unfit = [name for name in taken if not name.isidentifier() or keyword.iskeyword(name)]
    if unfit:
        raise Malformed(f"{unfit[0]!r} is no name of a parameter")
    text = "import sys\nfrom pathlib import Path\n\nHERE = Path(__file__).parent\nsys.path.insert(0, str(HERE))\n"
    if file.endswith(_COMPILED):
        sources = [name for name in names if name.endswith(_COMPILED)]
        text += _KEEPING.format(names=names)
        text += _BUILDS[solution.binding].format(sources=f"[str(KEPT / name) for name in {sources!r}]")
        text += f"_run = _built.{function}\n"
    else:
        text += "from kernelci.compiling.loading import load\n\n"
        text += f"_run = load(HERE / {file!r}, 'kernelci_solution').{function}\n"
    return f"{text}\n\ndef {ENTRY}({', '.join(taken)}):\n    return _run({', '.join(taken)})\n"


def definition(path: Path) -> Definition:
    """Read a definition. Raises Malformed."""
    return _read(path.read_bytes(), Definition, path.name)


def solution(path: Path) -> Solution:
    """Read a solution. Raises Malformed."""
    return _read(path.read_bytes(), Solution, path.name)


def is_definition(path: Path) -> bool:
    """Whether a JSON file has what a definition has."""
    return _keys(path) >= {"axes", "inputs", "outputs", "reference"}


def is_solution(path: Path) -> bool:
    """Whether a JSON file has what a solution has."""
    return _keys(path) >= {"definition", "spec", "sources"}


def name_of(path: Path) -> str:
    """A definition's own name, which need not be its file's."""
    return str(_object(path).get("name", path.stem))


def _keys(path: Path) -> set[str]:
    return set(_object(path))


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def main_dtype(found: Definition) -> str:
    """The dtype that a definition's cases are named by: its first float of usual width, else its first."""
    tensors = [*found.inputs.values(), *found.outputs.values()]
    kinds = [tensor.dtype for tensor in tensors if tensor.shape is not None]
    return next((kind for kind in kinds if kind in ("bfloat16", "float16", "float32")), (*kinds, "float32")[0])


def cases(found: Definition, given: Sequence[Workload]) -> Iterator[tuple[Case, Workload]]:
    """Each workload as a case to be checked, in their order. Those of the same sizes are numbered."""
    sizes = [tuple(workload.axes.items()) for workload in given]
    for number, (workload, size) in enumerate(zip(given, sizes, strict=True)):
        told = (("workload", str(number)),) if sizes.count(size) > 1 else ()
        hidden = ("_workload", msgspec.json.encode(workload).decode())
        yield Case("check", (*size, ("dtype", main_dtype(found)), *told, hidden), workload.uuid[:80]), workload


def workloads(path: Path) -> list[Workload]:
    """The workloads of the definition at `path`: in NAME.jsonl or workload.jsonl beside it, or where a dataset keeps
    them (`workloads/` for `definitions/`). None where there is no such file. Raises Malformed."""
    beside = [path.with_suffix(".jsonl"), path.with_name("workload.jsonl")]
    parts = list(path.parts)
    if "definitions" in parts:
        parts[len(parts) - 1 - parts[::-1].index("definitions")] = "workloads"
        beside.append(Path(*parts).with_suffix(".jsonl"))
    found = next((one for one in beside if one.is_file()), None)
    lines = found.read_bytes().splitlines() if found is not None else []
    return [_workload(line, f"{path.stem}.jsonl") for line in lines if line.strip()]


def _workload(line: bytes, name: str) -> Workload:
    if b'"workload"' in line:
        return _read(line, Line, name).workload
    return _read(line, Workload, name)


def _read(data: bytes, kind: type[Record], name: str) -> Record:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise Malformed(f"{name}: {error}") from error


def _computed(node: ast.AST, known: Mapping[str, int]) -> Any:
    """The value of an expression of sizes. Raises Malformed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_computed(node.left, known), _computed(node.right, known))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_computed(node.operand, known))
    raise Malformed(f"{ast.unparse(node)!r} is no size")
