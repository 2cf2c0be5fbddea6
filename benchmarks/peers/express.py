"""The softmax kernels of the corpus and of kernels/ in KernelBench's form and in flashinfer-bench's.

Every evaluator then gets the same file with the same call around it. What needs another reference, a base, other dtypes
or a prepare() can't be expressed and is left out.
"""

import ast
import json
from pathlib import Path

from msgspec import Struct

from kernelci.card import parse
from kernelci.errors import CardError

ROWS, COLS = 4096, 1024
REFERENCES = ("softmax", "softmax_timed")
PROBLEM = f'''"""Softmax over rows."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn({ROWS}, {COLS})]


def get_init_inputs():
    return []
'''
DEFINITION = {
    "name": "softmax",
    "op_type": "softmax",
    "axes": {"rows": {"type": "var"}, "cols": {"type": "const", "value": COLS}},
    "inputs": {"x": {"shape": ["rows", "cols"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["rows", "cols"], "dtype": "float32"}},
    "reference": "import torch\n\n\ndef run(x):\n    return torch.softmax(x, dim=1)\n",
}
WORKLOAD = {"uuid": "softmax-0", "axes": {"rows": ROWS}, "inputs": {"x": {"type": "random"}}}


class Kernel(Struct, frozen=True):
    """One kernel: its code without a card, its entry, and whether an evaluator should let it pass."""

    name: str
    code: str
    entry: str
    in_place: bool
    honest: bool


def kernels(*folders: Path) -> list[Kernel]:
    """Those of the folders that can be expressed."""
    found = (_kernel(path) for folder in folders for path in sorted(folder.rglob("*.py")))
    return [one for one in found if one is not None]


def _kernel(path: Path) -> Kernel | None:
    text = path.read_text(encoding="utf-8")
    try:
        card = parse(text)
    except CardError:
        return None
    expect = card.expect
    elsewhere = expect is not None and (expect.tier != "pr" or expect.base or expect.said or expect.verdicts)
    if card.reference not in REFERENCES or card.backend != "triton" or elsewhere:
        return None
    code = text[text.index("# ///\n", text.index("# /// script")) + len("# ///\n") :]
    try:
        nodes = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError:
        return None
    entry = next((node for node in nodes if node.name == card.entry), None)
    if entry is None or any(node.name in ("prepare", "compile") for node in nodes):
        return None
    taken = [one.arg for one in (*entry.args.args, *entry.args.kwonlyargs)]
    return Kernel(path.stem, code, card.entry, "y" in taken, expect is None or expect.honest)


def kernelbench(found: list[Kernel], root: Path) -> None:
    """A project of one problem and a solution for each kernel."""
    _write(root / "references" / "softmax.py", PROBLEM)
    for kernel in found:
        call = f"y = torch.empty_like(x)\n        {kernel.entry}(x=x, y=y)\n        return y"
        call = call if kernel.in_place else f"return {kernel.entry}(x=x)"
        model = f"\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {call}\n"
        _write(root / "kernels" / "softmax" / f"{kernel.name}.py", f"{kernel.code}\nimport torch\n{model}")


def dataset(found: list[Kernel], root: Path) -> None:
    """A dataset of flashinfer-bench, which is a project too."""
    _write(root / "definitions" / "softmax" / "softmax.json", json.dumps(DEFINITION))
    line = {"definition": "softmax", "solution": None, "workload": WORKLOAD, "evaluation": None}
    _write(root / "workloads" / "softmax" / "softmax.jsonl", json.dumps(line) + "\n")
    _write(root / "kernelci.toml", 'references = "definitions"\nkernels = "solutions"\n')
    for kernel in found:
        call = f"{kernel.entry}(x=x, y=y)" if kernel.in_place else f"y.copy_({kernel.entry}(x=x))"
        code = f"{kernel.code}\n\ndef run(x, y):\n    {call}\n"
        spec = {"language": "triton", "target_hardware": ["cuda"], "entry_point": "main.py::run"}
        solution = {
            "name": kernel.name,
            "definition": "softmax",
            "author": "corpus",
            "spec": {**spec, "dependencies": [], "destination_passing_style": True},
            "sources": [{"path": "main.py", "content": code}],
        }
        _write(root / "solutions" / "softmax" / f"{kernel.name}.json", json.dumps(solution))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
