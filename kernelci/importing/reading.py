"""What a script shows of its kernel: which functions launch one, what they are compared with, and on which tensors."""

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

_JIT = ("triton.jit", "jit", "tilelang.jit", "cute.kernel", "cute.jit", "T.prim_func")
_CHECKS = ("torch.allclose", "torch.testing.assert_close", "torch.equal", "assert_close", "allclose")
_MADE = {
    "torch.rand": "uniform", "torch.randn": "normal", "torch.zeros": "normal", "torch.ones": "normal",
    "torch.empty": "normal", "torch.randint": "integers",
}  # fmt: skip


class Made(Struct, frozen=True):
    """A tensor of the script: how it is drawn, its sizes as they are written, its dtype's name."""

    name: str
    draw: str
    sizes: tuple[str, ...]
    dtype: str = "float32"
    high: str = ""


class Script(Struct, frozen=True):
    """What was found. `reference`: the expression that the wrapper is compared with, empty if none was found."""

    text: str
    kernels: tuple[str, ...] = ()
    wrappers: tuple[str, ...] = ()
    entry: str = ""
    inputs: tuple[str, ...] = ()
    """The entry's parameters."""
    arguments: tuple[str, ...] = ()
    """What the checked call passes for them."""
    reference: str = ""
    made: tuple[Made, ...] = ()
    constants: dict[str, str] = {}


def read(text: str, entry: str = "") -> Script:
    """Look at a script; `entry` chooses among its wrappers. Raises SyntaxError."""
    tree = ast.parse(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    kernels = tuple(name for name, node in functions.items() if any(_name(one) in _JIT for one in node.decorator_list))
    wrappers = tuple(name for name, node in functions.items() if name not in kernels and _launches(node, set(kernels)))
    values = dict(_assigned(tree))
    checked = [pair for pair in _checked(tree, values) if _called(pair[0]) in ((entry,) if entry else wrappers)]
    chosen = entry or (_called(checked[0][0]) if checked else next(iter(wrappers), ""))
    if chosen not in functions:
        return Script(text, kernels, wrappers)
    own = functions[chosen].args
    inputs = tuple(one.arg for one in (*own.posonlyargs, *own.args, *own.kwonlyargs))
    call, other = checked[0] if checked else (None, None)
    arguments = tuple(ast.unparse(one) for one in call.args) if isinstance(call, ast.Call) else ()
    constants = {name: ast.unparse(value) for name, value in values.items() if _is_number(value)}
    made = tuple(found for name, value in values.items() if (found := _made(name, value)) is not None)
    told = ast.unparse(other) if other is not None else ""
    return Script(text, kernels, wrappers, chosen, inputs, arguments, told, made, constants)


def kept(text: str) -> str:
    """The script without what it does when it is run: checks, benchmarks, tensors of its own, prints."""
    lines: list[str | None] = list(text.splitlines())
    done: set[str] = set()
    for node in ast.parse(text).body:
        if _acts(node, done):
            done |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
            end = node.end_lineno or first
            lines[first - 1 : end] = [None] * (end - first + 1)
    left = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{4,}", "\n\n\n", left).strip("\n") + "\n"


def _acts(node: ast.stmt, done: set[str]) -> bool:
    """Whether a statement does something beyond defining; or builds on one that was left out."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return any("perf_report" in ast.unparse(one) for one in node.decorator_list)
    if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Assert | ast.Delete):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign):
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        calls = {_name(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
        return bool(names & done or calls & set(_MADE) or any("torch.manual_seed" in call for call in calls))
    return False


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are given, anywhere outside of wrappers: the first assignment counts."""
    seen: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            for one, given in pairs:
                if isinstance(one, ast.Name) and one.id not in seen:
                    seen.add(one.id)
                    yield one.id, given


def _checked(tree: ast.Module, values: dict[str, ast.expr]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs that are compared, both ways round, names replaced by what they were given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in _CHECKS and len(node.args) >= 2:
            one, other = (values.get(_name(side), side) for side in node.args[:2])
            yield one, other
            yield other, one


def _called(node: ast.expr) -> str:
    return _name(node.func) if isinstance(node, ast.Call) else ""


def _launches(node: ast.FunctionDef, kernels: set[str]) -> bool:
    """Whether a function has `kernel[grid](…)`, or calls a compiled kernel."""
    if any("perf_report" in ast.unparse(one) for one in node.decorator_list):
        return False
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            function = one.func.value if isinstance(one.func, ast.Subscript) else one.func
            if _name(function) in kernels:
                return True
    return False


def _made(name: str, value: ast.expr) -> Made | None:
    """A tensor that the script makes; None for anything else."""
    call = value
    while isinstance(call, ast.Call) and _name(call.func) not in _MADE:
        if not isinstance(call.func, ast.Attribute):
            return None
        call = call.func.value  # torch.randn(…).half(): the innermost call
    if not isinstance(call, ast.Call):
        return None
    draw = _MADE[_name(call.func)]
    sizes, high = list(call.args), ""
    if draw == "integers":
        bounds = [one for one in sizes if not isinstance(one, ast.Tuple | ast.List)]
        high = ast.unparse(bounds[-1]) if bounds else "2"
        sizes = [one for one in sizes if isinstance(one, ast.Tuple | ast.List)]
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = list(sizes[0].elts)
    dtype = next((ast.unparse(one.value) for one in call.keywords if one.arg == "dtype"), "")
    dtype = dtype.removeprefix("torch.") or ("int64" if draw == "integers" else "float32")
    return Made(name, draw, tuple(ast.unparse(size) for size in sizes), dtype, high)


def _is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float) and value.value is not True


def _name(node: ast.expr) -> str:
    """A dotted name, of a call's function too; empty for anything else."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
