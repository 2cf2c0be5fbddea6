"""Sections of an ELF file, which a cubin is: 64 bits, little-endian (elf(5))."""

import struct

from msgspec import Struct

MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
NOBITS = 8  # a section that takes memory and no bytes of the file
_HEADER = struct.Struct("<40xQ10xHHH")  # where the section headers lie, their size and number, and the names' section
_SECTION = struct.Struct("<IIQQQQIIQQ")
MAX_SECTIONS = 100_000


class BrokenElf(Exception):
    """The bytes are no ELF file of this kind, or it is cut off."""


class Section(Struct, frozen=True):
    """One section: its name, its size in memory, its bytes in the file (none for NOBITS), and `sh_flags`."""

    name: str
    size: int
    content: bytes
    flags: int = 0


def sections(data: bytes) -> tuple[Section, ...]:
    """All sections in the file's order. Raises BrokenElf."""
    if data[:6] != MAGIC or len(data) < _HEADER.size:
        raise BrokenElf("no ELF file of 64 bits")
    start, size, count, names = _HEADER.unpack_from(data)
    if size < _SECTION.size or count > MAX_SECTIONS or start + size * count > len(data) or names >= count:
        raise BrokenElf("the section headers lie outside of the file")
    headers = [_SECTION.unpack_from(data, start + number * size) for number in range(count)]
    texts = _content(data, headers[names])
    return tuple(Section(_name(texts, header[0]), header[5], _content(data, header), header[2]) for header in headers)


def _content(data: bytes, header: tuple[int, ...]) -> bytes:
    kind, offset, size = header[1], header[4], header[5]
    if kind == NOBITS:
        return b""
    if offset + size > len(data):
        raise BrokenElf("a section lies outside of the file")
    return data[offset : offset + size]


def _name(texts: bytes, offset: int) -> str:
    return texts[offset:].partition(b"\0")[0].decode("utf-8", "replace")
