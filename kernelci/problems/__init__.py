"""Problems and kernels in other people's formats, judged as they are: told by what a file defines, read as text.

A KernelBench problem is a reference that defines `Model` and `get_inputs`; a solution defines `ModelNew` and has no
card. It belongs to the reference that its folder names, and its backend is told by what it imports.
"""

import ast
from pathlib import Path

from msgspec import Struct

MODEL, SOLUTION = "Model", "ModelNew"
ENTRY = "kernelci_entry"  # the name under which the loader offers a solution as an entry
# The first one that a solution imports; what imports none of them is built or called by torch itself.
_BACKENDS = (("tilelang", "tilelang"), ("cutlass", "cutedsl"), ("triton", "triton"), ("cuda", "cuda"))
TORCH = "torch"


class Defined(Struct, frozen=True):
    """What a file defines and imports at module level."""

    classes: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()

    @property
    def is_problem(self) -> bool:
        """Whether it is a KernelBench problem."""
        return MODEL in self.classes and "get_inputs" in self.functions

    @property
    def is_solution(self) -> bool:
        """Whether it is a KernelBench solution."""
        return SOLUTION in self.classes

    @property
    def backend(self) -> str:
        """The backend that its imports tell."""
        return next((backend for name, backend in _BACKENDS if name in self.imports), TORCH)


def defined(text: str) -> Defined:
    """What a Python file's text defines; nothing where it does not parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return Defined()
    classes = frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    functions = frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return Defined(classes, functions, frozenset(_imported(tree)))


def defined_in(path: Path) -> Defined:
    """What a file defines; nothing where it can't be read."""
    try:
        return defined(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return Defined()


def _imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found
