"""Two folders of dumps compared by their machine code: how often each SASS opcode occurs, base against head."""

import re
from collections import Counter
from pathlib import Path

from kernelci.errors import ConfigError

_INSTRUCTION = re.compile(
    r"^[ \t]*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+|@!?UPT\s+|@!?PT\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)", re.M
)
MAX_BYTES = 64 * 2**20


def opcodes(folder: Path) -> dict[str, Counter[str]]:
    """Per `.sass` file, by its path in the folder, the opcodes without their modifiers."""
    found = {}
    for path in sorted(folder.rglob("*.sass")):
        text = path.read_bytes()[:MAX_BYTES].decode(errors="replace")
        found[path.relative_to(folder).as_posix()] = Counter(name.split(".")[0] for name in _INSTRUCTION.findall(text))
    if not found:
        raise ConfigError(f"no .sass file in {folder.name}", hint="kernelci compile writes them to REPORT/dumps")
    return found


def inside(root: Path, name: str) -> Path:
    """A folder of the project. Raises ConfigError for one that is not there, or not in it."""
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ConfigError(f"{name!r} is outside the project", hint="name a folder in it")
    if not path.is_dir():
        raise ConfigError(f"no folder {name!r}")
    return path


def compared(base: Path, head: Path) -> str:
    """Files of one name against each other: the opcodes whose counts differ, the largest change first."""
    old, new = opcodes(base), opcodes(head)
    lines = [f"only in base: {name}" for name in old.keys() - new.keys()]
    lines += [f"only in head: {name}" for name in new.keys() - old.keys()]
    lines.sort()
    for name in sorted(old.keys() & new.keys()):
        lines += _file(name, old[name], new[name])
    return "\n".join(lines)


def _file(name: str, old: Counter[str], new: Counter[str]) -> list[str]:
    changed = [opcode for opcode in old | new if old[opcode] != new[opcode]]
    head = f"{name}: {old.total()} → {new.total()} instructions"
    if not changed:
        return [f"{head}, the same opcodes"]
    changed.sort(key=lambda opcode: (-abs(new[opcode] - old[opcode]), opcode))
    return [
        head,
        *(f"  {opcode:<12} {old[opcode]:>6} → {new[opcode]:<6} ({new[opcode] - old[opcode]:+d})" for opcode in changed),
    ]
