"""The softmax kernels of the corpus and of kernels/ in KernelBench's form and in flashinfer-bench's.

Every evaluator then gets the same file with the same call around it. What needs another reference, a base, other dtypes
or a prepare() can't be expressed and is left out, as is what attacks kernelci's own processes or the host and computes
rightly elsewhere (classes A8, B8, C2 to C5, E, F), what only the sanitizers stop in this form (X, D8), what is wrong in
one shape alone, and what never ends.
"""

import ast
import json
import re
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

from msgspec import Struct

ROWS, COLS = 4096, 1024
_ONE_SHAPE = re.compile(r"(rows|cols) == [1-9]")
_LEFT_OUT = re.compile(r"(a8|b8|c[2345]|d8|e\d|f\d|x\d)_|store_past|eats_memory|endless_|never_returns")
REFERENCES = ("softmax", "softmax_few", "softmax_timed")
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
    from kernelci.card import parse
    from kernelci.errors import CardError

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


def chosen(found: Sequence[Kernel], limit: int) -> list[Kernel]:
    """`limit` kernels spread over the corpus, a third of them honest, mixed so that each part holds all kinds."""
    fit = [one for one in found if not _LEFT_OUT.match(one.name) and not _ONE_SHAPE.search(one.code)]
    honest = _spread([one for one in fit if one.honest], limit // 3)
    others = _spread([one for one in fit if not one.honest], limit - len(honest))
    mixed = zip_longest(honest, others[0::2], others[1::2])
    return [one for one in chain.from_iterable(mixed) if one is not None]


def _spread(some: Sequence[Kernel], count: int) -> list[Kernel]:
    count = min(count, len(some))
    return [some[number * len(some) // count] for number in range(count)]


def kernelbench(found: Sequence[Kernel], root: Path, target: str = "sm_90a", deadline_s: float = 60.0) -> None:
    """A project of one problem and a solution for each kernel; kernelci's deadline for a call is everyone's."""
    _write(root / "references" / "softmax.py", PROBLEM)
    _write(root / "kernelci.toml", f'targets = ["{target}"]\ncall_timeout_s = {deadline_s}\n')
    _write(root / "order.txt", "\n".join(kernel.name for kernel in found))
    for kernel in found:
        call = f"y = torch.empty_like(x)\n        {kernel.entry}(x=x, y=y)\n        return y"
        call = call if kernel.in_place else f"return {kernel.entry}(x=x)"
        model = f"\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {call}\n"
        _write(root / "kernels" / "softmax" / f"{kernel.name}.py", f"{kernel.code}\nimport torch\n{model}")


def dataset(found: Sequence[Kernel], root: Path) -> None:
    """A dataset of flashinfer-bench in which each kernel has a definition of its own."""
    for number, kernel in enumerate(found):
        name = f"softmax_{number:03d}_{kernel.name}"  # definitions are run in the order of their files
        _write(root / "definitions" / "softmax" / f"{name}.json", json.dumps({**DEFINITION, "name": name}))
        line = {"definition": name, "solution": None, "workload": WORKLOAD | {"uuid": name}, "evaluation": None}
        _write(root / "workloads" / "softmax" / f"{name}.jsonl", json.dumps(line) + "\n")
        call = f"{kernel.entry}(x=x, y=y)" if kernel.in_place else f"y.copy_({kernel.entry}(x=x))"
        code = f"{kernel.code}\n\ndef run(x, y):\n    {call}\n"
        spec = {"language": "triton", "target_hardware": ["cuda"], "entry_point": "main.py::run"}
        solution = {
            "name": kernel.name,
            "definition": name,
            "author": "corpus",
            "spec": {**spec, "dependencies": [], "destination_passing_style": True},
            "sources": [{"path": "main.py", "content": code}],
        }
        _write(root / "solutions" / "softmax" / f"{kernel.name}.json", json.dumps(solution))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
