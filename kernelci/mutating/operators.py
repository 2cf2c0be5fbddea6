"""Mutation operators that Python and CUDA C++ share: comparison, arithmetic, logic, constants, terms, operands."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from kernelci.mutating.syntax import Node, text


class Change(Struct, frozen=True):
    """One span of the source (bytes from `start` to `end`) replaced by `new`; `operator` is the kind of fault."""

    operator: str
    start: int
    end: int
    new: str


Operator = Callable[[Node], Iterator[Change]]

_COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "%", "%": "/", "<<": ">>", ">>": "<<", "^": "|"}
_LOGIC = {"&": "|", "|": "&", "&&": "||", "||": "&&", "and": "or", "or": "and"}
_AUGMENTED = {"+=": "-=", "-=": "+=", "*=": "+=", "/=": "*="}
_CONJUNCTIONS = ("&", "&&", "and")
_TERMS = ("+", "-", "*", "/")
_ORDERED = ("-", "/", "//", "%")
_BINARY = ("binary_operator", "binary_expression", "boolean_operator", "comparison_operator")
_ASSIGNMENTS = ("augmented_assignment", "assignment_expression")
_ATOMS = ("identifier", "integer", "float", "number_literal", "call", "call_expression", "subscript",
          "subscript_expression", "attribute", "field_expression", "parenthesized_expression")  # fmt: skip


def replace(operator: str, node: Node, new: str) -> Change:
    """The change that puts `new` in the place of a node."""
    return Change(operator, node.start_byte, node.end_byte, new)


def parts(node: Node) -> tuple[Node, Node, Node] | None:
    """Left, operator and right of a binary expression or a comparison; None for anything else, chains included."""
    if node.type not in _BINARY or node.child_count != 3:
        return None
    left, operator, right = node.children
    return left, operator, right


def compare(node: Node) -> Iterator[Change]:
    """`<` for `<=` and back; `==` for `!=`."""
    found = parts(node)
    if found and text(found[1]) in _COMPARE:
        yield replace("compare", found[1], _COMPARE[text(found[1])])


def arithmetic(node: Node) -> Iterator[Change]:
    """Another operator of arithmetic, in expressions and in `+=`."""
    found = parts(node)
    if found and text(found[1]) in _ARITHMETIC:
        new = _ARITHMETIC[text(found[1])]
        python = node.type == "binary_operator"
        yield replace("arithmetic", found[1], "//" if python and text(found[1]) == "%" else new)
    operator = node.child_by_field_name("operator") if node.type in _ASSIGNMENTS else None
    if operator is not None and text(operator) in _AUGMENTED:
        yield replace("arithmetic", operator, _AUGMENTED[text(operator)])


def logic(node: Node) -> Iterator[Change]:
    """And for or."""
    found = parts(node)
    if found and text(found[1]) in _LOGIC:
        yield replace("logic", found[1], _LOGIC[text(found[1])])


def mask(node: Node) -> Iterator[Change]:
    """One side of a conjunction alone."""
    found = parts(node)
    if found and text(found[1]) in _CONJUNCTIONS:
        yield replace("mask", node, text(found[0]))
        yield replace("mask", node, text(found[2]))


def term(node: Node) -> Iterator[Change]:
    """One term or factor dropped; in `x += y`, what x held before."""
    found = parts(node)
    if found and text(found[1]) in _TERMS:
        yield replace("term", node, text(found[0]))
        if text(found[1]) in ("+", "*"):
            yield replace("term", node, text(found[2]))
    operator = node.child_by_field_name("operator") if node.type in _ASSIGNMENTS else None
    if operator is not None and text(operator) in _AUGMENTED:
        yield replace("term", operator, "=")


def operands(node: Node) -> Iterator[Change]:
    """The operands of what is not commutative, swapped."""
    found = parts(node)
    if found and text(found[1]) in _ORDERED:
        left, operator, right = found
        yield replace("operands", node, f"{_bracketed(right)} {text(operator)} {_bracketed(left)}")


def sign(node: Node) -> Iterator[Change]:
    """A minus or a not dropped."""
    operand = node.child_by_field_name("argument")
    if node.type in ("unary_operator", "unary_expression", "not_operator") and operand is not None:
        infinity = "inf" in text(operand)
        yield replace("sign", node, text(operand))
        if infinity:
            yield from unequal_identity(node, "")


def unequal_identity(node: Node, suffix: str) -> Iterator[Change]:
    """A weaker stand-in for minus infinity: zero, and a number that looks small enough."""
    for value in ("0.0", "-1e4"):
        yield replace("identity", node, value + suffix)


def constant(node: Node) -> Iterator[Change]:
    """A number one off; a factor two off; and a thousandth off."""
    if node.type not in ("integer", "float", "number_literal"):
        return
    literal = text(node)
    if literal.isdigit():
        yield replace("constant", node, str(int(literal) + 1))
        if literal == "1":
            yield replace("constant", node, "0")
        return
    suffix = "f" if node.type == "number_literal" and literal.endswith("f") and "x" not in literal else ""
    try:
        value = float(literal.removesuffix(suffix))
    except ValueError:
        return  # hexadecimal, or with a suffix: patterns of bits, for which one off means nothing
    for new in (2 * value or 1.0, value * 1.001 or 0.001):
        yield replace("constant", node, f"{new!r}{suffix}")


def branch(node: Node) -> Iterator[Change]:
    """A condition turned round."""
    if node.type != "if_statement":
        return
    condition = node.child_by_field_name("condition")
    if condition is None:
        return
    if condition.type == "condition_clause":
        value = condition.child_by_field_name("value")
        if value is not None:
            yield replace("branch", value, f"!({text(value)})")
            yield replace("mask", value, "true")
    else:
        yield replace("branch", condition, f"not ({text(condition)})")
        yield replace("mask", condition, "True")


def _bracketed(node: Node) -> str:
    return text(node) if node.type in _ATOMS else f"({text(node)})"


SHARED: tuple[Operator, ...] = (compare, arithmetic, logic, mask, term, operands, sign, constant, branch)
