"""Mutation operators for device code in Python: Triton and TileLang, and what of CuTe DSL looks the same."""

from collections.abc import Iterator

from kernelci.mutating.operators import SHARED, Change, Operator, replace, unequal_identity
from kernelci.mutating.syntax import Node, named, text

_FUNCTIONS = {
    "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "reduce_max": "reduce_min",
    "reduce_min": "reduce_max", "reduce_sum": "reduce_max", "sum": "max", "exp": "exp2", "exp2": "exp",
}  # fmt: skip
_DROPPED = ("exp", "exp2", "sqrt", "sqrt_rn", "rsqrt", "log", "log2")
_WHERE = ("where", "if_then_else")
_ROUND_UP = ("cdiv", "ceildiv")
_RANGES = ("range", "serial", "static_range", "Pipelined", "unroll", "Parallel")
_BARRIERS = ("barrier", "sync", "fence", "wait", "commit", "arrive")
_DTYPES = {"float32": "float16", "int64": "int32"}
_OPTIONAL = {"mask": "mask", "other": "other"}


def _call(node: Node) -> tuple[str, Node, list[Node]] | None:
    """The last word of the function's name, the argument list, and the positional arguments."""
    if node.type != "call":
        return None
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if arguments is None or arguments.type != "argument_list":
        return None
    positional = [child for child in arguments.named_children if child.type not in ("keyword_argument", "comment")]
    return text(function).rpartition(".")[2], arguments, positional


def function(node: Node) -> Iterator[Change]:
    """Another function of the same kind, or none: max for min, exp for exp2, x for sqrt(x)."""
    call = _call(node)
    if call is None:
        return
    name, _, positional = call
    callee = node.child_by_field_name("function")
    word = callee.child_by_field_name("attribute") or callee
    if name in _FUNCTIONS:
        yield replace("function", word, _FUNCTIONS[name])
    if name in _DROPPED and len(positional) == 1:
        yield replace("function", node, f"({text(positional[0])})")


def rounding(node: Node) -> Iterator[Change]:
    """A quotient rounded down instead of up: the last tile is missing."""
    call = _call(node)
    if call and call[0] in _ROUND_UP and len(call[2]) == 2:
        left, right = map(text, call[2])
        yield replace("rounding", node, f"(({left}) // ({right}))")


def where(node: Node) -> Iterator[Change]:
    """The two values of a choice swapped, and each without the choice."""
    call = _call(node)
    if call and call[0] in _WHERE and len(call[2]) == 3:
        condition, yes, no = call[2]
        callee = text(node.child_by_field_name("function"))
        yield replace("operands", node, f"{callee}({text(condition)}, {text(no)}, {text(yes)})")
        yield replace("mask", node, f"({text(yes)})")


def optional(node: Node) -> Iterator[Change]:
    """A load without its mask (and then without `other`), or without `other`; a store without its mask."""
    call = _call(node)
    if call is None:
        return
    keywords = {text(kw.child_by_field_name("name")): kw for kw in named(call[1], "keyword_argument")}
    if "mask" in keywords:
        yield _without(node, "mask", [kw for name, kw in keywords.items() if name in _OPTIONAL])
    if "other" in keywords:
        yield _without(node, "other", [keywords["other"]])


def _without(node: Node, operator: str, dropped: list[Node]) -> Change:
    arguments = node.child_by_field_name("arguments")
    kept = [child for child in arguments.named_children if child not in dropped and child.type != "comment"]
    return replace(operator, arguments, f"({', '.join(map(text, kept))})")


def accumulate(node: Node) -> Iterator[Change]:
    """A matrix product that forgets what was accumulated before."""
    call = _call(node)
    if call and call[0] == "dot" and len(call[2]) == 3:
        yield _without(node, "term", [call[2][2]])


def loop(node: Node) -> Iterator[Change]:
    """The first or the last step of a loop left out."""
    call = _call(node)
    if call is None or call[0] not in _RANGES or not call[2]:
        return
    name, _, positional = call
    if len(positional) >= 2 and name != "Parallel":
        begin, end, step = *positional[:2], text(positional[2]) if len(positional) > 2 else "1"
        yield replace("loop", begin, f"{text(begin)} + {step}")
        yield replace("loop", end, f"{text(end)} - {step}")
        return
    for bound in positional:
        yield replace("loop", bound, f"{text(bound)} - 1")


def index(node: Node) -> Iterator[Change]:
    """An address or a subscript one off; `[:, None]` for `[None, :]`."""
    call = _call(node)
    if call and call[0] in ("load", "store") and call[2] and text(node.child_by_field_name("function")) in (
        "tl.load", "tl.store",
    ):  # fmt: skip
        yield replace("index", call[2][0], f"{text(call[2][0])} + 1")
    if node.type != "subscript":
        return
    inside = node.children_by_field_name("subscript")
    words = [text(child) for child in inside]
    if sorted(words) == [":", "None"]:
        span = Change("index", inside[0].start_byte, inside[-1].end_byte, ", ".join(reversed(words)))
        yield span
    elif not {":", "None"} & set(words):
        for child in dict.fromkeys((inside[0], inside[-1])):
            yield replace("index", child, f"{text(child)} + 1")


def dtype(node: Node) -> Iterator[Change]:
    """A narrower dtype; a conversion left out."""
    if node.type == "attribute" and text(node).rpartition(".")[2] in _DTYPES:
        word = node.child_by_field_name("attribute")
        yield replace("dtype", word, _DTYPES[text(word)])
    if node.type == "string" and text(node)[1:-1] in _DTYPES:
        yield replace("dtype", node, f'"{_DTYPES[text(node)[1:-1]]}"')
    call = _call(node)
    if call is None or len(call[2]) < 1:
        return
    callee = node.child_by_field_name("function")
    if call[0] == "to" and callee.type == "attribute":
        yield replace("dtype", node, text(callee.child_by_field_name("object")))
    elif call[0] == "cast" and len(call[2]) == 2:
        yield replace("dtype", node, f"({text(call[2][0])})")


def identity(node: Node) -> Iterator[Change]:
    """`float("-inf")` as a number that only looks small enough."""
    if node.type == "call" and text(node) in ('float("-inf")', "float('-inf')"):
        yield from unequal_identity(node, "")


def flag(node: Node) -> Iterator[Change]:
    """True for False."""
    if node.type in ("true", "false"):
        yield replace("constant", node, "False" if node.type == "true" else "True")


def statement(node: Node) -> Iterator[Change]:
    """A call or an augmented assignment left out; a barrier is a kind of its own."""
    if node.type != "expression_statement" or not node.named_children:
        return
    inner = node.named_children[0]
    call = _call(inner)
    if call is not None:
        barrier = any(word in call[0] for word in _BARRIERS)
        yield replace("barrier" if barrier else "statement", node, "pass")
    elif inner.type == "augmented_assignment":
        yield replace("statement", node, "pass")


PYTHON: tuple[Operator, ...] = (
    *SHARED, function, rounding, where, optional, accumulate, loop, index, dtype, identity, flag, statement,
)  # fmt: skip
