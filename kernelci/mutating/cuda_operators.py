"""Mutation operators for CUDA C++."""

import re
from collections.abc import Iterator

from kernelci.mutating.operators import SHARED, Change, Operator, parts, replace, unequal_identity
from kernelci.mutating.syntax import Node, text

_FUNCTIONS = {
    "fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max", "expf": "exp2f", "__expf": "exp2f",
    "exp2f": "expf", "sqrtf": "cbrtf", "rsqrtf": "rcbrtf", "__shfl_xor_sync": "__shfl_down_sync",
}  # fmt: skip
_BARRIERS = re.compile(r"sync|barrier|fence|wait|commit|arrive|expect")
_WIDE = {"long long": "int", "int64": "int", "double": "float"}
_COMPARISONS = ("<", "<=", ">", ">=")


def function(node: Node) -> Iterator[Change]:
    """Another function of the same kind; a fused multiply-add without its addend."""
    if node.type != "call_expression":
        return
    callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if text(callee) in _FUNCTIONS:
        yield replace("function", callee, _FUNCTIONS[text(callee)])
    positional = arguments.named_children if arguments is not None else []
    if text(callee) == "fmaf" and len(positional) == 3:
        left, right, _ = map(text, positional)
        yield replace("term", node, f"(({left}) * ({right}))")


def loop(node: Node) -> Iterator[Change]:
    """The first or the last step of a loop left out."""
    if node.type != "for_statement":
        return
    condition, begin = node.child_by_field_name("condition"), node.child_by_field_name("initializer")
    found = parts(condition) if condition is not None else None
    update = text(node.child_by_field_name("update"))
    step = update.partition("+=")[2].strip() or "1"
    if found and text(found[1]) in _COMPARISONS:
        yield replace("loop", found[2], f"{text(found[2])} {'-' if '<' in text(found[1]) else '+'} {step}")
    declared = begin.child_by_field_name("declarator") if begin is not None else None
    value = declared.child_by_field_name("value") if declared is not None else None
    if value is not None and ("++" in update or "+=" in update):
        yield replace("loop", value, f"{text(value)} + {step}")


def choice(node: Node) -> Iterator[Change]:
    """`a ? b : c` as b, as c, and with the two swapped."""
    if node.type != "conditional_expression":
        return
    condition, yes, no = (text(node.child_by_field_name(name)) for name in ("condition", "consequence", "alternative"))
    yield replace("operands", node, f"({condition} ? {no} : {yes})")
    yield replace("mask", node, f"({yes})")
    yield replace("mask", node, f"({no})")


def index(node: Node) -> Iterator[Change]:
    """A subscript one off, where it is no constant."""
    if node.type == "subscript_argument_list" and node.named_child_count == 1:
        inside = node.named_children[0]
        if inside.type != "number_literal":
            yield replace("index", inside, f"{text(inside)} + 1")


def dtype(node: Node) -> Iterator[Change]:
    """A narrower type."""
    if node.type in ("sized_type_specifier", "primitive_type", "type_identifier") and text(node) in _WIDE:
        yield replace("dtype", node, _WIDE[text(node)])
    elif node.type == "call_expression" and text(node.child_by_field_name("function")) in _WIDE:
        callee = node.child_by_field_name("function")
        yield replace("dtype", callee, _WIDE[text(callee)])


def rounding(node: Node) -> Iterator[Change]:
    """PTX that rounds toward zero instead of to the nearest."""
    if node.type == "string_content" and ".rn." in text(node):
        yield replace("rounding", node, text(node).replace(".rn.", ".rz."))


def identity(node: Node) -> Iterator[Change]:
    """A weaker stand-in for minus infinity."""
    if node.type == "identifier" and text(node) in ("MINUS_INFINITY", "NEGATIVE_INFINITY"):
        yield from unequal_identity(node, "f")


def statement(node: Node) -> Iterator[Change]:
    """A call, an assignment or inline PTX left out; a barrier is a kind of its own."""
    if node.type != "expression_statement" or not node.named_children:
        return
    inner = node.named_children[0]
    if inner.type not in ("call_expression", "assignment_expression", "gnu_asm_expression"):
        return
    barrier = inner.type != "assignment_expression" and _BARRIERS.search(text(inner)) is not None
    yield replace("barrier" if barrier else "statement", node, ";")


CUDA: tuple[Operator, ...] = (
    *SHARED, function, loop, choice, index, dtype, rounding, identity, statement,
)  # fmt: skip
