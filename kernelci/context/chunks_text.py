"""Prose in chunks: the sections under Markdown and reStructuredText headings; long ones in pieces."""

import re
from collections.abc import Iterator

from kernelci.context.chunks import Chunk, split

_HEADING = re.compile(r"^(#{1,6})\s+(.{1,300}?)\s*#*$")
_UNDERLINE = re.compile(r"^([=\-~^\"'+*.])\1{2,}\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")


def of(path: str, text: str) -> Iterator[Chunk]:
    """The sections of a document; the title names the headings above."""
    lines = text.splitlines()
    starts = list(_headings(lines))
    name = path.rpartition("/")[2]
    if not starts or starts[0][0] > 0:
        starts.insert(0, (0, 0, name))
    trail: dict[int, str] = {}
    for (start, level, heading), end in zip(starts, [*(place for place, _, _ in starts[1:]), len(lines)], strict=True):
        trail = {depth: words for depth, words in trail.items() if depth < level} | {level: heading}
        if any(line.strip() for line in lines[start:end]):
            title = " › ".join(trail.values())[-300:]
            kind = "section" if level else "text"
            yield from split(Chunk(kind, heading if level else "", start + 1, end, title), lines[start:end])


def _headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Where a section starts (counted from 0), its depth, and its heading; not within fences."""
    fenced, marks = False, ""
    for index, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (match := _HEADING.match(line)):
            yield index, len(match[1]), match[2]
        elif not fenced and _underlined(lines, index):
            mark = lines[index + 1][0]
            marks += "" if mark in marks else mark
            yield index, marks.index(mark) + 1, line.strip()


def _underlined(lines: list[str], index: int) -> bool:
    line = lines[index]
    if not line.strip() or line[0].isspace() or index + 1 >= len(lines) or _UNDERLINE.match(line):
        return False
    below = lines[index + 1].rstrip()
    return bool(_UNDERLINE.match(below)) and len(below) >= len(line.rstrip()) - 1
