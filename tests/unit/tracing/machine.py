"""As much of a PTX machine as the marks of a trace need: one thread at a time, on bytes from an address on."""

import re
from collections.abc import Mapping

WIDTH = {"b32": 4, "u32": 4, "b64": 8, "u64": 8}
LINE = re.compile(r"(?:@(\w+) )?([a-z][\w.]*) (.+);")
OPERANDS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")


class Thread:
    """A thread's registers; `special` are what it reads as %name, each read of a clock or timer a cycle later."""

    def __init__(self, memory: bytearray, base: int, special: Mapping[str, int]) -> None:
        self._memory = memory
        self._base = base
        self._special = dict(special)
        self._registers: dict[str, int] = {}

    def run(self, text: str) -> None:
        """Execute lines; declarations and braces say nothing here."""
        lines, at = [line.strip() for line in text.split("\n")], 0
        while at < len(lines):
            found = LINE.fullmatch(lines[at])
            at += 1
            if not found or (found[1] and not self._registers[found[1]]):
                continue
            if found[2] == "bra":
                at = lines.index(f"{found[3]}:")
            else:
                self._step(found[2], OPERANDS.findall(found[3]))

    def _step(self, name: str, operands: list[str]) -> None:
        parts = name.split(".")
        target, *sources = operands
        width = WIDTH.get(parts[-1], 4)
        if parts[0] == "mov" and sources[0].startswith("%"):
            self._registers[target] = self._read_special(sources[0])
        elif parts[0] == "mov" and target.startswith("{"):
            value = self._value(sources[0])
            low, high = target.strip("{}").split(", ")
            self._registers[low], self._registers[high] = value & 0xFFFFFFFF, value >> 32
        elif parts[0] in ("mov", "cvt"):
            self._registers[target] = self._value(sources[0]) & (1 << 8 * WIDTH[parts[1]]) - 1
        elif parts[0] == "st":
            self._store(target, sources[0], width)
        elif parts[0] == "ld":
            self._registers[target] = self._load(self._place(sources[0]), width)
        elif parts[0] == "atom":
            at = self._place(sources[0])
            old = self._registers[target] = self._load(at, width)
            values = [self._value(each) for each in sources[1:]]
            new = old + values[0] if parts[2] == "add" else values[1] if old == values[0] else old
            self._write(at, new, width)
        else:
            self._registers[target] = self._computed(parts, [self._value(each) for each in sources])

    def _computed(self, parts: list[str], values: list[int]) -> int:
        if parts[0] == "setp":
            holds = {"eq": values[0] == values[1], "ne": values[0] != values[1], "lt": values[0] < values[1]}[parts[1]]
            return int(holds and (len(values) == 2 or values[2] != 0))
        if parts[0] == "mad":
            return values[0] * values[1] + values[2] & (1 << (64 if parts[1] == "wide" else 32)) - 1
        if parts[0] == "add":
            return values[0] + values[1] & (1 << 8 * WIDTH[parts[-1]]) - 1
        if parts[0] in ("sub", "mul"):
            value = values[0] - values[1] if parts[0] == "sub" else values[0] * values[1]
            return value & (1 << 8 * WIDTH[parts[-1]]) - 1
        if parts[0] == "min":
            return min(values)
        assert parts[0] == "shr", parts
        return values[0] >> values[1]

    def _read_special(self, name: str) -> int:
        value = self._special[name[1:]]
        if name in ("%clock64", "%globaltimer"):
            self._special[name[1:]] += 1
        return value

    def _value(self, operand: str) -> int:
        return self._registers[operand] if operand in self._registers else int(operand, 0)

    def _place(self, operand: str) -> int:
        register, _, offset = operand.strip("[]").partition("+")
        return self._registers[register] + int(offset or 0) - self._base

    def _store(self, target: str, source: str, width: int) -> None:
        at = self._place(target)
        for number, each in enumerate(source.strip("{}").split(", ")):
            self._write(at + number * width, self._value(each), width)

    def _load(self, at: int, width: int) -> int:
        assert 0 <= at <= len(self._memory) - width
        return int.from_bytes(self._memory[at : at + width], "little")

    def _write(self, at: int, value: int, width: int) -> None:
        assert 0 <= at <= len(self._memory) - width
        assert at % width == 0
        self._memory[at : at + width] = value.to_bytes(width, "little")
