"""Python in chunks: each function, class and method with its docstring; what is left of a module as one chunk."""

import ast
import warnings
from collections.abc import Iterator

from kernelci.context import chunks_text
from kernelci.context.chunks import MAX_BODY, MAX_DOC, Chunk, pieces, split

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_TITLE = 300


def of(path: str, text: str) -> Iterator[Chunk]:
    """The chunks of a module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = list(_of(path, ast.parse(text), text.splitlines()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = list(chunks_text.of(path, text))
    yield from found


def _of(path: str, tree: ast.Module, lines: list[str]) -> Iterator[Chunk]:
    yield from _module(path, tree, lines)
    for node in _last_of_each(tree.body):
        yield from _class(node, lines) if isinstance(node, ast.ClassDef) else _function(node, lines, "", "function")


def _last_of_each(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    """Definitions, also those in top-level `if` and `try`; of overloads only the implementation, which is the last."""
    found: dict[str, Function | ast.ClassDef] = {}
    for node in _flat(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name in found and _is_accessor(node):
                continue
            found[node.name] = node
    yield from found.values()


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from _flat([*node.body, *node.orelse])
        else:
            yield node


def _is_accessor(node: Function | ast.ClassDef) -> bool:
    """Whether it is a property's setter or deleter, after the getter that carries the docstring."""
    names = (item.attr for item in node.decorator_list if isinstance(item, ast.Attribute))
    return any(name in ("setter", "deleter") for name in names)


def _module(path: str, tree: ast.Module, lines: list[str]) -> Iterator[Chunk]:
    """The module's docstring, and its statements that define neither function nor class."""
    doc = ast.get_docstring(tree) or ""
    rest = [
        node for node in _flat(tree.body) if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    bound = " ".join(dict.fromkeys(name for node in rest for name in _bound(node)))
    body = "\n".join("\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in rest if not _is_docstring(node))
    if doc or body:
        name = path.rpartition("/")[2]
        yield Chunk("module", "", 1, max(1, min(len(lines), 40)), name, doc[:MAX_DOC], body[:MAX_BODY], bound[:MAX_DOC])


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _bound(node: ast.stmt) -> Iterator[str]:
    """Names that an assignment binds: constants and aliases are definitions too."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return (target.id for target in targets if isinstance(target, ast.Name))


def _first(node: Function | ast.ClassDef) -> int:
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])


def _function(node: Function, lines: list[str], owner: str, kind: str) -> Iterator[Chunk]:
    symbol = f"{owner}.{node.name}" if owner else node.name
    last = node.end_lineno or node.lineno
    title = f"def {symbol}({_parameters(node)})"[:_MAX_TITLE]
    chunk = Chunk(kind, symbol, _first(node), last, title, (ast.get_docstring(node) or "")[:MAX_DOC])
    yield from split(chunk, lines[chunk.first - 1 : last])


def _parameters(node: Function) -> str:
    """The parameters' names; those that only carry the compiler's own state are left out."""
    found = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    names = [item.arg for item in found if item.arg not in ("self", "cls", "loc", "ip", "_semantic", "_generator")]
    names += [f"*{node.args.vararg.arg}"] if node.args.vararg else []
    names += [f"**{node.args.kwarg.arg}"] if node.args.kwarg else []
    return ", ".join(names)


def _class(node: ast.ClassDef, lines: list[str]) -> Iterator[Chunk]:
    """The class as its docstring, fields and method names; then each method."""
    methods = [item for item in _last_of_each(node.body) if not isinstance(item, ast.ClassDef)]
    first, last = _first(node), node.end_lineno or node.lineno
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    title = f"class {node.name}({bases})"[:_MAX_TITLE] if bases else f"class {node.name}"
    inner = [item for item in node.body if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
    fields = "\n".join("\n".join(lines[item.lineno - 1 : item.end_lineno]) for item in inner if not _is_docstring(item))
    names = " ".join(item.name for item in methods if not item.name.startswith("__"))
    names += " " + " ".join(name for item in inner for name in _bound(item))
    doc = (ast.get_docstring(node) or "")[:MAX_DOC]
    pieces_of_body = list(pieces(fields.splitlines(), first)) or [(first, last, "")]
    yield Chunk("class", node.name, first, last, title, doc, pieces_of_body[0][2], names[:MAX_DOC].strip())
    for _, _, body in pieces_of_body[1:]:
        yield Chunk("part", node.name, first, last, f"{title} (continued)", body=body)
    for item in methods:
        yield from _function(item, lines, node.name, "method")
