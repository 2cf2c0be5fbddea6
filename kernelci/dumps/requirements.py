"""What a reference asks of the machine code: `requires` and `forbids`, in words, checked against a build.

A word is a class of opcodes (`tensor core`, `bulk copy`), `tensor core` with a data type (`tensor core float8`), either
of them as `newest tensor core …` for the target's own kind, or an opcode (`LDGSTS`, `HGMMA.64x*`).
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from kernelci.dumps import opcodes
from kernelci.dumps.sass import Instruction
from kernelci.gpus import Gpu

NEWEST = "newest "
# The kind of tensor core that a target has and its predecessors have not; it needs the target's suffix.
_NEWEST = {"sm_90a": 2, "sm_100a": 3, "sm_100f": 3, "sm_101a": 3, "sm_103a": 3, "sm_103f": 3, "sm_110a": 3}
_OPCODE = re.compile(r"[A-Z*][A-Za-z0-9_.*]*")


def is_known(word: str, types: Sequence[str]) -> bool:
    """Whether a word says something; `types` are the data types that there are."""
    plain = word.removeprefix(NEWEST)
    tensor = plain == opcodes.TENSOR or plain.removeprefix(f"{opcodes.TENSOR} ") in types
    return tensor or (plain == word and (word in opcodes.classes() or _OPCODE.fullmatch(word) is not None))


def can_be_met(word: str, gpu: Gpu) -> bool:
    """Whether the target has what the word names: a data type that its tensor cores don't have can't be asked of it."""
    type_ = _type(word)
    return not type_ or type_ in gpu.peak_flops_per_s


def has(word: str, code: Sequence[Instruction], target: str) -> bool:
    """Whether machine code for a target has what the word names."""
    if opcodes.TENSOR in word:
        least = _NEWEST.get(target, 1) if word.startswith(NEWEST) else 1
        found = [each for each in code if opcodes.unit(each.name) >= least]
        return any(not _type(word) or _type(word) in opcodes.types(each) for each in found)
    if word in opcodes.classes():
        return any(opcodes.kind(each) == word for each in code)
    return any(fnmatchcase(each.name, word) or fnmatchcase(each.opcode, word) for each in code)


def _type(word: str) -> str:
    return word.removeprefix(NEWEST).removeprefix(opcodes.TENSOR).strip() if opcodes.TENSOR in word else ""


def unmet(requires: Sequence[str], code: Sequence[Instruction], gpu: Gpu, target: str) -> tuple[str, ...]:
    """What is required, could be there, and is not."""
    return tuple(word for word in requires if can_be_met(word, gpu) and not has(word, code, target))


def broken(forbids: Sequence[str], code: Sequence[Instruction], target: str) -> tuple[tuple[str, Instruction], ...]:
    """What is forbidden and is there, with the first instruction of each."""
    return tuple(
        (word, next(each for each in code if has(word, (each,), target))) for word in forbids if has(word, code, target)
    )
