"""What a build's machine code consists of: counts by class and opcode, multiplications, widths, uses of local memory.

Counts are of instructions in the code, each once, however often a loop repeats it.
"""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kernelci.dumps import opcodes
from kernelci.dumps.sass import Instruction

STACK = "[R1"  # the stack pointer, by the ABI: spills have addresses relative to it
_LOADS = {"LDG": "global load", "LD": "global load", "STG": "global store", "ST": "global store", "LDS": "shared load",
          "STS": "shared store", "LDGSTS": "asynchronous copy"}  # fmt: skip


class Anatomy(Struct, frozen=True):
    """Machine code in numbers."""

    instructions: int
    opcodes: dict[str, int]
    classes: dict[str, int]
    multiplications: dict[str, int]
    """Tensor core instructions by opcode, shape and types: `HGMMA 64x128x16 bfloat16`."""
    unit: int
    """The most recent kind of tensor core in use: an index of opcodes.UNITS."""
    widths: dict[str, dict[int, int]]
    """By what moves (global load, shared store, …) how many instructions move so many bits a thread."""
    spills: int
    """Loads and stores of the stack at fixed places."""
    arrays: int
    """Loads and stores of local memory at computed places: arrays that are in no register."""

    def width(self, what: str) -> int:
        """The width, bits, in which most bytes move; 0 where nothing of the kind does."""
        found = self.widths.get(what, {})
        return max(found, key=lambda bits: (bits * found[bits], bits), default=0)

    @property
    def unknown(self) -> float:
        """The share of instructions whose opcodes no class names."""
        return self.classes.get(opcodes.OTHER, 0) / self.instructions if self.instructions else 0.0

    @property
    def tensor(self) -> str:
        """The multiplications in words, the most frequent first: `4 HGMMA 64x128x16 bfloat16`."""
        found = sorted(self.multiplications.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{count} {name}" for name, count in found)


def dissect(code: Iterable[Instruction]) -> Anatomy:
    """Count everything once."""
    code = tuple(code)
    names = Counter(each.name for each in code)
    widths: dict[str, Counter[int]] = {}
    for each in code:
        if what := _LOADS.get(each.name):
            widths.setdefault(what, Counter())[opcodes.bits(each)] += 1
    local = [each for each in code if each.name in ("LDL", "STL")]
    return Anatomy(
        len(code),
        dict(names),
        dict(Counter(opcodes.kind(each) for each in code)),
        dict(Counter(_multiplication(each) for each in code if opcodes.unit(each.name))),
        max((opcodes.unit(name) for name in names), default=0),
        {what: dict(found) for what, found in widths.items()},
        sum(STACK in each.operands for each in local),
        sum(STACK not in each.operands for each in local),
    )


def _multiplication(found: Instruction) -> str:
    types = "/".join(filter(None, opcodes.types(found)))
    return " ".join(filter(None, (found.name, opcodes.shape(found), types)))
