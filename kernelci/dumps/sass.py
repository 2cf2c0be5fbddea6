"""SASS as nvdisasm (`-c`, `-g`) or cuobjdump (`-sass`) print it: instructions, their source lines, and their bare form.

The form of a line is in NVIDIA's "CUDA Binary Utilities"; it is the same for all architectures since Volta.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

MAX_CHARACTERS = 64 * 2**20
_INSTRUCTION = re.compile(
    r"[ \t]*/\*[0-9a-f]{4,}\*/[ \t]+(?:\{[ \t]*)?(?:@(!?U?P[T\d]+)[ \t]+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)([^;]*)"
)
_LINE = re.compile(r'[ \t]*//## File "([^"]*)", line (\d+)')
_LABEL = re.compile(r"`?\(?\.L_x?_?[\w$]+\)?")
_REGISTER = re.compile(r"\b(UR|R|UP|P|B|SB)\d+\b")
_SYMBOL = re.compile(r"`\([^)]*\)|\b(?:fun|32@lo|32@hi)@?\([^)]*\)")
PADDING = "NOP"


class Instruction(Struct, frozen=True):
    """One instruction. `opcode` has its modifiers (`LDG.E.128`); `line` is 0 where the cubin does not tell."""

    opcode: str
    operands: str = ""
    predicate: str = ""
    file: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """The opcode without modifiers: `LDG`."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """What follows the opcode: `("E", "128")`."""
        return tuple(self.opcode.split(".")[1:])

    def bare(self) -> str:
        """The instruction without what changes when nothing does: numbers of registers, labels, symbols."""
        text = _SYMBOL.sub("symbol", _LABEL.sub("label", self.operands)).replace(".reuse", "")
        guard = f"@{self.predicate} " if self.predicate else ""
        return _REGISTER.sub(r"\1", f"{guard}{self.opcode} {' '.join(text.split())}").rstrip()


def parse(text: str) -> tuple[Instruction, ...]:
    """All instructions of a disassembly in its order, less the padding. Lines that are none are passed over."""
    return tuple(found for found in _instructions(text[:MAX_CHARACTERS]) if found.name != PADDING)


def _instructions(text: str) -> Iterator[Instruction]:
    file, line = "", 0
    for row in text.split("\n"):
        if place := _LINE.match(row):
            file, line = place[1].rsplit("/", 1)[-1], int(place[2])
        elif row.lstrip().startswith(".text."):
            file, line = "", 0
        elif found := _INSTRUCTION.match(row):
            yield Instruction(found[2], found[3].strip(), found[1] or "", file, line)


def why_none(text: str) -> str:
    """Why a file holds no machine code, in the words that were left in it; empty where it has some."""
    if any(True for _ in _instructions(text[:MAX_CHARACTERS])):
        return ""
    said = re.search(r"// no disassembly: ([^\n]{1,300})", text)
    return said[1] if said else "the file holds no SASS"
