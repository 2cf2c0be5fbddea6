"""Addresses whose offset is a product in 32 bits: right until a tensor has 2^31 elements, and then far away.

Read from PTX, which all DSLs leave: a register that is widened to 64 bits and added to a pointer, and that comes from a
32-bit multiplication of a block's index and a size that the kernel is given. What the compiler proves is gone by then.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

MAX_CHARACTERS = 8 * 2**20
STEPS = 64  # of a chain of instructions that are followed
_LINE = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+(.*?);", re.MULTILINE)
_PLACE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_REGISTER = re.compile(r"%\w+(?:\.\w)?")
_BLOCK = re.compile(r"%(?:ctaid|nctaid|clusterid)\.[xyz]")
_WIDENS = ("mul.wide.s32", "mul.wide.u32", "mad.wide.s32", "mad.wide.u32", "cvt.s64.s32", "cvt.u64.u32", "cvt.s64.u32")
_FOLLOWED = ("mov.", "add.", "sub.", "shl.", "mul.lo", "mad.lo", "selp.", "max.", "min.", "or.", "bfe.", "cvt.")


class Product(Struct, frozen=True):
    """A 32-bit product of a block's index and an argument that ends in an address; `line` is 0 where it isn't told."""

    file: str = ""
    line: int = 0


class _Made(Struct, frozen=True):
    """What made a register: an opcode, its operands, and where."""

    opcode: str
    operands: str
    place: Product


def products(ptx: str) -> tuple[Product, ...]:
    """Every place with such a product, each once."""
    found: dict[Product, None] = {}
    for kernel in ptx[:MAX_CHARACTERS].split(".entry")[1:]:
        made = dict(_made(kernel, _files(ptx)))
        for one in made.values():
            if one.opcode in _WIDENS:
                found |= dict.fromkeys(_guilty(_read(one), made))
    return tuple(found)


def _files(ptx: str) -> dict[str, str]:
    return {number: path.rsplit("/", 1)[-1] for number, path in _FILE.findall(ptx)}


def _made(kernel: str, files: dict[str, str]) -> Iterator[tuple[str, _Made]]:
    """Each register with what wrote it last; loads of more than one give each of theirs."""
    place = Product()
    for row in kernel.split("\n"):
        if where := _PLACE.match(row):
            place = Product(files.get(where[1], ""), int(where[2]))
        elif (found := _LINE.match(row)) and not found[1].startswith(("st.", "bra", "red.", "bar.")):
            target, _, rest = found[2].partition(",")
            for register in _REGISTER.findall(target):
                yield register, _Made(found[1], rest, place)


def _read(made: _Made) -> list[str]:
    return _REGISTER.findall(made.operands)


def _guilty(registers: Iterable[str], made: dict[str, _Made]) -> Iterator[Product]:
    """Products of a block's index and an argument among what these registers come from, in 32 bits."""
    for one in _chain(registers, made):
        if one.opcode.startswith(("mul.lo.s32", "mul.lo.u32", "mad.lo.s32", "mad.lo.u32")):
            left, right = [_sources(part, made) for part in one.operands.split(",")[:2]]
            if ("block" in left and "argument" in right) or ("argument" in left and "block" in right):
                yield one.place


def _chain(registers: Iterable[str], made: dict[str, _Made]) -> Iterator[_Made]:
    """What the registers come from, by arithmetic in 32 bits alone."""
    left, seen = list(registers), set[str]()
    while left and len(seen) < STEPS:
        name = left.pop()
        one = made.get(name)
        if one is None or name in seen or not one.opcode.startswith(_FOLLOWED) or "64" in one.opcode:
            continue
        seen.add(name)
        yield one
        left += _read(one)


def _sources(text: str, made: dict[str, _Made]) -> set[str]:
    """Whether a value comes from the block's index, or from an argument of the kernel."""
    found, left, seen = set[str](), _REGISTER.findall(text), set[str]()
    while left and len(seen) < STEPS:
        name = left.pop()
        if _BLOCK.fullmatch(name):
            found.add("block")
        one = made.get(name)
        if one is None or name in seen:
            continue
        seen.add(name)
        if one.opcode.startswith("ld.param"):
            found.add("argument")
        elif one.opcode.startswith(_FOLLOWED):
            left += _read(one)
    return found
