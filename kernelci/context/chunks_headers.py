"""C and C++ in chunks: declarations with the comment above; wrappers of PTX instructions by instruction and syntax."""

import re
from collections.abc import Iterator

from kernelci.context import chunks_text, words
from kernelci.context.chunks import MAX_BODY, MAX_DOC, Chunk, split

_PTX = re.compile(r"^// (.*;) // PTX ISA (\d+)(.*)$", re.MULTILINE)
# Each pattern stops where the next comment begins, or takes all that is left: no file makes it start over and over.
_BLOCK = re.compile(r"^/\*\n(// .*\n(?:(?!\*/|/\*).*\n)*)\*/$", re.MULTILINE)
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(")
_OPCODE = re.compile(r"^([a-z][\w.:]*)")
_NAMED = re.compile(
    r"\b(?:struct|class|union|enum(?:\s+class)?|namespace|using|typedef)\s+(?:\w+\([^)]*\)\s*)?([A-Za-z_]\w*)"
)
_TEMPLATE = re.compile(r"\btemplate\s*<[^{;]*?>\s*(?=[A-Za-z_])")
_MACRO = re.compile(r"^#\s*define\s+(\w+)", re.MULTILINE)
_FUNCTION = re.compile(r"\b([A-Za-z_]\w*)\s*\((?!\()")
_NOISE = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
_COMMENT = re.compile(r"^\s*(?://[/!<]*|/\*[*!]?|\*/|\*)\s?", re.MULTILINE)
_NOT_NAMES = frozenset(
    [
        "if",
        "for",
        "while",
        "switch",
        "return",
        "sizeof",
        "alignof",
        "defined",
        "asm",
        "volatile",
        "decltype",
        "static_assert",
        "__attribute__",
        "__declspec",
        "requires",
        "noexcept",
        "__builtin_align__",
        "__align__",
        "alignas",
        "_CCCL_REQUIRES",
        "_CCCL_TEMPLATE",
        "explicit",
        "__launch_bounds__",
    ]
)


def of(path: str, text: str) -> Iterator[Chunk]:
    """The chunks of a header or a source file."""
    if _PTX.search(text) and _BLOCK.search(text):
        yield from _instructions(path, text)
    else:
        yield from _declarations(path, text)


def _instructions(path: str, text: str) -> Iterator[Chunk]:
    """One chunk for the file's instruction with every syntax it has; then one per wrapper function."""
    stem = path.rpartition("/")[2].rpartition(".")[0]
    blocks = [(match, _Wrapper.of(match[1])) for match in _BLOCK.finditer(text)]
    wrappers = [wrapper for _, wrapper in blocks]
    opcodes = list(dict.fromkeys(opcode for wrapper in wrappers for opcode in wrapper.opcodes))
    functions = list(dict.fromkeys(name for wrapper in wrappers for name in wrapper.functions))
    gloss = words.instructions().get(stem, "")
    syntax = list(dict.fromkeys(line for wrapper in wrappers for line in wrapper.syntax))
    title = f"PTX {_short(opcodes)}" if opcodes else stem
    names = " ".join([*functions, *opcodes])[:MAX_DOC]
    last = text.count("\n") + 1
    yield Chunk("instruction", stem, 1, last, title, gloss, "\n".join(syntax)[:MAX_BODY], names)
    yield from _variants(text, blocks)


class _Wrapper:
    """What the comment above a wrapper says: PTX syntax, and the C++ functions that emit it."""

    def __init__(self, syntax: list[str], functions: list[str]) -> None:
        self.syntax, self.functions = syntax, functions
        self.opcodes = [match[1] for line in syntax if (match := _OPCODE.match(line))]

    @classmethod
    def of(cls, comment: str) -> "_Wrapper":
        lines = comment.split("\n")
        syntax = [match[1] for line in lines if (match := re.match(r"// (.*?;?) // PTX ISA", line))]
        declared = "\n".join(line for line in lines if not line.startswith("//"))
        functions = [name for name in _CALL.findall(declared) if not name.startswith("__")]
        return cls(syntax, functions[:1])


def _short(opcodes: list[str]) -> str:
    shown = ", ".join(opcodes[:4])
    return f"{shown} and {len(opcodes) - 4} more" if len(opcodes) > 4 else shown


def _variants(text: str, blocks: list[tuple[re.Match[str], _Wrapper]]) -> Iterator[Chunk]:
    """Neighbouring wrappers of one function together, as long as they fit into one chunk."""
    group: list[tuple[int, int, _Wrapper]] = []
    ends = [*(match.start() for match, _ in blocks), len(text)][1:]
    line, at = 1, 0
    for (match, wrapper), end in zip(blocks, ends, strict=True):
        line, at = line + text.count("\n", at, match.start()), match.start()
        last = line + text.count("\n", match.start(), end) - 1
        if group and (group[-1][2].functions != wrapper.functions or last - group[0][0] > 120):
            yield from _variant(group)
            group = []
        group.append((line, last, wrapper))
    if group:
        yield from _variant(group)


def _variant(group: list[tuple[int, int, _Wrapper]]) -> Iterator[Chunk]:
    syntax = list(dict.fromkeys(line for _, _, wrapper in group for line in wrapper.syntax))
    function = next(iter(group[0][2].functions), "")
    if function:
        title = f"{function}: {syntax[0] if syntax else ''}"[:300]
        yield Chunk("variant", function, group[0][0], group[-1][1], title, "", "\n".join(syntax)[:MAX_BODY])


def _declarations(path: str, text: str) -> Iterator[Chunk]:
    """Blocks between blank lines at the outermost level, where namespaces and `extern` open none."""
    lines = text.splitlines()
    found = False
    for start, end in _blocks(text, lines):
        block = "\n".join(lines[start:end])
        symbol = _symbol(block)
        if not symbol:
            continue
        found = True
        comment = _leading_comment(lines[start:end])
        title = next((line.strip() for line in lines[start:end] if symbol in line), symbol)[:300]
        chunk = Chunk("declaration", symbol, start + 1, end, title, comment[:MAX_DOC])
        yield from split(chunk, lines[start:end])
    if not found:
        yield from chunks_text.of(path, text)


def _blocks(text: str, lines: list[str]) -> Iterator[tuple[int, int]]:
    """First and last line (half open) of each block."""
    quiet = _NOISE.sub(lambda match: "\n" * match[0].count("\n"), text).splitlines()
    quiet += [""] * (len(lines) - len(quiet))
    start, depth = 0, 0
    for index, line in enumerate(lines):
        code = quiet[index]
        if re.search(r"\b(namespace|extern)\b[^;()]*\{\s*$", code):
            code = ""
        depth = max(0, depth + code.count("{") - code.count("}"))
        if depth == 0 and not line.strip():
            if start < index:
                yield start, index
            start = index + 1
    if start < len(lines):
        yield start, len(lines)


def _symbol(block: str) -> str:
    """What the block declares: the first type, function or macro that it names."""
    code = _NOISE.sub("", block[:20_000])[:4_000]
    head = _TEMPLATE.sub("", code.split("{", 1)[0])
    named = _NAMED.search(head)
    names = [name for name in _FUNCTION.findall(head) if name not in _NOT_NAMES and not name.isupper()]
    if names and not (named and head.lstrip().startswith(("struct", "class", "union", "enum"))):
        return str(names[0])
    macro = _MACRO.search(code)
    if named:
        return named[1]
    return macro[1] if macro else (names[0] if names else "")


def _leading_comment(lines: list[str]) -> str:
    """The comment at the head of a block, without its marks."""
    taken = []
    for line in lines:
        if not line.lstrip().startswith(("//", "/*", "*")):
            break
        taken.append(_COMMENT.sub("", line))
    return "\n".join(taken).strip()
