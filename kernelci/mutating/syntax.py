"""Source as a syntax tree, and where in it the device code and the launch arithmetic lie."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from kernelci.errors import not_installed

Node: TypeAlias = Any  # tree_sitter.Node: it and its grammars are an extra

# The last word of a decorator that makes device code of a function: triton.jit, T.prim_func, cute.kernel …
_DEVICE_DECORATORS = ("jit", "prim_func", "macro", "kernel")
_DEVICE_SPECIFIERS = ("__global__", "__device__")
_LAUNCH_KEYWORDS = ("grid", "block", "cluster")


class Region(Struct, frozen=True):
    """A piece of source that may be mutated: the body of a device function, or launch arithmetic of the host.

    `reaches`: the device function that it is, or launches; empty where that is not known.
    """

    node: Node
    function: str
    device: bool
    reaches: str = ""


def parse(path: Path, source: bytes) -> Node:
    """The root of the file's syntax tree. Raises ConfigError where the extra is not installed."""
    tree = _parser(path.suffix).parse(source)
    return tree.root_node


@functools.cache
def _parser(suffix: str) -> Any:
    try:
        import tree_sitter
        import tree_sitter_cuda
        import tree_sitter_python
    except ImportError as error:
        raise not_installed(error.name, "mutate") from error
    grammar = tree_sitter_python if suffix == ".py" else tree_sitter_cuda
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def regions(path: Path, root: Node) -> tuple[Region, ...]:
    """Device functions and launch arithmetic, in the order of the source."""
    found = list(_python_regions(root)) if path.suffix == ".py" else list(_cuda_regions(root))
    return tuple(sorted(found, key=lambda region: int(region.node.start_byte)))


def _python_regions(root: Node) -> Iterator[Region]:
    device = {text(function.child_by_field_name("name")): function for function in _device_functions(root)}
    for name, function in device.items():
        yield Region(function.child_by_field_name("body"), name, device=True, reaches=name)
    seen: set[int] = set()
    for node in walk(root):
        if node.type == "function_definition" and text(node.child_by_field_name("name")) == "grid":
            yield Region(node.child_by_field_name("body"), "grid", device=False)
        for part, launched in _launch_parts(node, device):
            if part.start_byte not in seen:
                seen.add(part.start_byte)
                yield Region(part, _enclosing(part), device=False, reaches=launched)


def _device_functions(root: Node) -> Iterator[Node]:
    for node in walk(root):
        if node.type == "decorated_definition":
            words = [text(child)[1:].partition("(")[0].rpartition(".")[2] for child in node.children]
            definition = node.child_by_field_name("definition")
            if definition.type == "function_definition" and any(word.strip() in _DEVICE_DECORATORS for word in words):
                yield definition


def _launch_parts(node: Node, device: dict[str, Node]) -> Iterator[tuple[Node, str]]:
    """`kernel[grid](…)`, `LaunchConfig(grid=…)`: the grid, or what is assigned to its name in the same function."""
    function = node.child_by_field_name("function") if node.type == "call" else None
    if function is None:
        return
    if function.type == "subscript" and text(function.child_by_field_name("value")) in device:
        yield _resolved(function.child_by_field_name("subscript")), text(function.child_by_field_name("value"))
    elif text(function).endswith("LaunchConfig"):
        for argument in named(node.child_by_field_name("arguments"), "keyword_argument"):
            if text(argument.child_by_field_name("name")) in _LAUNCH_KEYWORDS:
                yield _resolved(argument.child_by_field_name("value")), ""


def _resolved(node: Node) -> Node:
    """The node, or where it is a bare name what that is assigned to in the same function."""
    if node.type != "identifier":
        return node
    scope = _scope(node)
    for other in walk(scope) if scope is not None else ():
        if other.type == "assignment" and text(other.child_by_field_name("left")) == text(node):
            return other.child_by_field_name("right") or node
    return node


def _cuda_regions(root: Node) -> Iterator[Region]:
    for node in walk(root):
        body = node.child_by_field_name("body") if node.type == "function_definition" else None
        if body is None:
            continue
        head = node.text[: body.start_byte - node.start_byte].decode("utf-8", "replace")
        if any(word in head for word in _DEVICE_SPECIFIERS):
            yield Region(body, _declared(node), device=True)


def _declared(function: Node) -> str:
    """The name that a C++ function's declarator declares, however it is wrapped."""
    declarator = function.child_by_field_name("declarator")
    names = [node for node in walk(declarator) if node.type in ("identifier", "field_identifier")]
    calls = [node for node in walk(function) if node.type == "function_declarator"]
    inner = calls[0].child_by_field_name("declarator") if calls else None
    return text(inner) if inner is not None else (text(names[0]) if names else "")


def is_launch(node: Node) -> bool:
    """Whether a node of device code is the grid of TileLang's `T.Kernel(…)`, which the host computes."""
    while node is not None and node.type not in ("block", "module"):
        if node.type == "call" and text(node.child_by_field_name("function")).endswith(".Kernel"):
            return True
        node = node.parent
    return False


def _scope(node: Node) -> Node | None:
    while node is not None and node.type != "function_definition":
        node = node.parent
    return node


def _enclosing(node: Node) -> str:
    scope = _scope(node)
    return text(scope.child_by_field_name("name")) if scope is not None else ""


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the source; what the parser could not read is left out."""
    stack = [node]
    while stack:
        node = stack.pop()
        if node.type == "ERROR":
            continue
        yield node
        stack.extend(reversed(node.children))


def text(node: Node | None) -> str:
    """The node's source."""
    return node.text.decode("utf-8", "replace") if node is not None else ""


def named(node: Node, *types: str) -> list[Node]:
    """The direct children of these types."""
    return [child for child in node.children if child.type in types]
