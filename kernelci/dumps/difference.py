"""A readable difference of SASS or PTX: what only names, addresses, registers or labels differ in is the same."""

import difflib
import re
from collections.abc import Sequence

from msgspec import Struct

from kernelci.dumps.sass import Instruction

CONTEXT = 3
MAX_LINES = 20_000  # of either side; beyond them a difference is not looked for
_COMMENT = re.compile(r"//.*")
_REGISTER = re.compile(r"%([a-z]{1,3})\d+\b")
_LABEL = re.compile(r"\$L\w+|\bL__?\w+|\b__?tmp\d+")
_SKIPPED = (".loc", ".file", ".reg", ".version", ".target", ".address_size", ".weak", "@!debug")


class Line(Struct, frozen=True):
    """One line of a difference: what became of it (" ", "-", "+", or "@" where lines were left out), and its text."""

    mark: str
    text: str


def of_sass(base: Sequence[Instruction], head: Sequence[Instruction]) -> tuple[Line, ...]:
    """Machine code against machine code, each instruction with its source line where that is known."""
    return _difference(
        [each.bare() for each in base], [each.bare() for each in head], [*map(_shown, base)], [*map(_shown, head)]
    )


def _shown(found: Instruction) -> str:
    return f"{found.bare():<64} // {found.file}:{found.line}" if found.line else found.bare()


def of_ptx(base: str, head: str) -> tuple[Line, ...]:
    """PTX against PTX, without comments, debug information and declarations of registers."""
    old, new = _bare_ptx(base), _bare_ptx(head)
    return _difference(old, new, old, new)


def _bare_ptx(text: str) -> list[str]:
    names = sorted(set(re.findall(r"\.(?:entry|func)\s+([\w$.]+)", text)), key=len, reverse=True)
    body = text.partition("\n\t.section\t.debug")[0]
    for number, name in enumerate(names):
        body = body.replace(name, f"kernel{number or ''}")
    lines = (" ".join(_COMMENT.sub("", line).split()) for line in body.split("\n"))
    return [
        _LABEL.sub("label", _REGISTER.sub(r"%\1", line)) for line in lines if line and not line.startswith(_SKIPPED)
    ]


def _difference(old: list[str], new: list[str], old_shown: list[str], new_shown: list[str]) -> tuple[Line, ...]:
    if old == new:
        return ()
    if max(len(old), len(new)) > MAX_LINES:
        return (Line("@", f"{len(old)} and {len(new)} lines: too long to compare line by line"),)
    found: list[Line] = []
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        found.append(Line("@", f"from line {group[0][1] + 1} of base, {group[0][3] + 1} of head"))
        for tag, from_old, to_old, from_new, to_new in group:
            if tag == "equal":
                found += [Line(" ", text) for text in new_shown[from_new:to_new]]
            else:
                found += [Line("-", text) for text in old_shown[from_old:to_old]]
                found += [Line("+", text) for text in new_shown[from_new:to_new]]
    return tuple(found)


def text(lines: Sequence[Line]) -> str:
    """The lines as people know them: `+ LDG.E.32 …`."""
    return "".join(f"{line.mark} {line.text}\n" for line in lines)
