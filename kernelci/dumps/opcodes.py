"""Classes of opcodes, from `opcodes.toml`, and what an opcode's modifiers say: width, shape, data type, unit."""

import functools
import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from kernelci.dumps.sass import Instruction

OTHER = "other"
TENSOR = "tensor core"
# What starts a multiplication: a warp (mma.sync), a warpgroup (wgmma), or one thread on tensor memory (tcgen05).
UNITS = ("", "warp", "warpgroup", "tensor memory")
# By the modifiers of a warp's or warpgroup's multiplication; without any of these HMMA and HGMMA take float16.
_TYPES = {
    "BF16": "bfloat16",
    "TF32": "tf32",
    "E4M3": "float8",
    "E5M2": "float8",
    "E2M1": "float4",
    "E2M3": "float6",
    "E3M2": "float6",
}
_FAMILIES = {"I": "int8", "D": "float64", "B": "bit", "Q": "float8", "O": "float4"}
_WIDTHS = {"256": 256, "128": 128, "64": 64, "U16": 16, "S16": 16, "U8": 8, "S8": 8, "ENL2": 256}
_SHAPE = re.compile(r"\d+x\d+x\d+")
# m, n and k run together in a warp's multiplication.
_WARP_SHAPES = {
    "884": "8x8x4",
    "1684": "16x8x4",
    "1688": "16x8x8",
    "16816": "16x8x16",
    "16832": "16x8x32",
    "16864": "16x8x64",
    "168128": "16x8x128",
    "168256": "16x8x256",
    "8816": "8x8x16",
    "8832": "8x8x32",
}


@functools.cache
def classes() -> dict[str, tuple[str, ...]]:
    """Patterns of opcodes by class, in the order in which they are asked."""
    tables = tomllib.loads(Path(__file__).with_name("opcodes.toml").read_text(encoding="utf-8"))
    return {name: tuple(table["opcodes"]) for name, table in tables.items()}


@functools.cache
def class_of(name: str) -> str:
    """The class of an opcode without modifiers; `other` for one that no class names."""
    for found, patterns in classes().items():
        if name in patterns or any("*" in pattern and fnmatchcase(name, pattern) for pattern in patterns):
            return found
    return OTHER


def unit(name: str) -> int:
    """The index in UNITS of what starts this multiplication; 0 for another opcode."""
    if class_of(name) != TENSOR:
        return 0
    return 3 if name.startswith("UTC") else 2 if name.endswith("GMMA") else 1


def types(found: Instruction) -> tuple[str, ...]:
    """The data types, by gpus.toml's names, that a multiplication may take; several where SASS does not tell."""
    name = found.name
    if name.startswith("UTC"):
        family = name[3:4]
        return ("float16", "bfloat16", "tf32") if family == "H" else (_FAMILIES.get(family, ""),)
    if name[:1] != "H":
        named = next((_TYPES[part] for part in found.modifiers if part in _TYPES), "")
        return (named or _FAMILIES.get(name[:1], ""),)
    return (next((_TYPES[part] for part in found.modifiers if part in _TYPES), "float16"),)


def shape(found: Instruction) -> str:
    """A multiplication's shape, `64x128x16`; empty where SASS does not tell (it stands in a descriptor)."""
    for part in found.modifiers:
        if _SHAPE.fullmatch(part):
            return part
        if part in _WARP_SHAPES:
            return _WARP_SHAPES[part]
    return ""


def bits(found: Instruction) -> int:
    """How many bits a thread's load or store moves."""
    return next((_WIDTHS[part] for part in found.modifiers if part in _WIDTHS), 32)


def kind(found: Instruction) -> str:
    """The class of an instruction; arithmetic that only brings a constant or a register somewhere is a move."""
    if found.opcode.startswith("IMAD.MOV") or (found.name == "HFMA2" and "-RZ, RZ," in found.operands):
        return "move"
    return class_of(found.name)
