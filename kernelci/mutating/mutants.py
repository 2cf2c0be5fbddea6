"""The mutants of a kernel: every change that the operators know, numbered in the order of the source."""

import difflib
import hashlib
import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kernelci.catalog import Kernel
from kernelci.errors import ConfigError
from kernelci.mutating.cuda_operators import CUDA
from kernelci.mutating.operators import Change
from kernelci.mutating.python_operators import PYTHON
from kernelci.mutating.syntax import Node, Region, is_launch, parse, regions, text, walk

_SHOWN = 48


class Mutant(Struct, frozen=True, kw_only=True):
    """One wrong variant: a span of one file replaced; `device` where that is device code, not launch arithmetic."""

    kernel: str
    number: int
    operator: str
    function: str
    file: str
    line: int
    before: str
    after: str
    device: bool
    reaches: str
    start: int
    end: int
    new: str

    @property
    def id(self) -> str:
        """Stable as long as the kernel's source is: `softmax/triton#017`."""
        return f"{self.kernel}#{self.number:03}"

    @property
    def label(self) -> str:
        """The id with what was changed and where: `softmax/triton#017 compare: < → <= line 41`."""
        return f"{self.id} {self.operator}: {self.before} → {self.after or 'nothing'} line {self.line}"

    def applied(self, source: bytes) -> bytes:
        """The file's source with the change made."""
        return source[: self.start] + self.new.encode() + source[self.end :]


class Request(Struct, frozen=True):
    """What is to be judged: some of the `known` mutants of a kernel, with the draws of a seed.

    `all_draws`: in the interpreter, whose climbs have few draws, survivors climb again with all that a GPU has.
    """

    kernel: Kernel
    mutants: tuple[Mutant, ...]
    known: int
    seed: str = "0"
    all_draws: bool = False


def mutants(kernel: Kernel) -> tuple[Mutant, ...]:
    """All mutants of a kernel's own files, numbered in the order of the source; no two have the same source."""
    found: list[Mutant] = []
    for path in kernel.sources():
        source = path.read_bytes()
        seen = {hashlib.sha256(source).digest()}
        for region, node, change in _changes(path, source):
            mutant = _mutant(kernel, path, source, region, node, change, len(found) + 1)
            digest = hashlib.sha256(mutant.applied(source)).digest()
            if digest not in seen:
                seen.add(digest)
                found.append(mutant)
    return tuple(found)


def _changes(path: Path, source: bytes) -> Iterator[tuple[Region, Node, Change]]:
    operators = PYTHON if path.suffix == ".py" else CUDA
    for region in regions(path, parse(path, source)):
        for node in walk(region.node):
            if _exempt(node):
                continue
            for operator in operators:
                for change in operator(node):
                    yield region, node, change


def _exempt(node: Node) -> bool:
    """Annotations and docstrings, and the arguments of arange, which compile only as powers of two."""
    parent = node.parent
    while parent is not None and parent.type not in ("block", "compound_statement", "module"):
        if parent.type in ("type", "template_argument_list", "preproc_call"):
            return True
        callee = parent.child_by_field_name("function") if parent.type == "call" else None
        if callee is not None and text(callee) == "tl.arange":
            return True
        parent = parent.parent
    return False


def _mutant(
    kernel: Kernel, path: Path, source: bytes, region: Region, node: Node, change: Change, number: int
) -> Mutant:
    before, after = _shown(source[change.start : change.end].decode("utf-8", "replace"), change.new)
    return Mutant(
        kernel=kernel.name,
        number=number,
        operator=change.operator,
        function=region.function,
        file=path.name,
        line=source.count(b"\n", 0, change.start) + 1,
        before=before,
        after=after,
        device=region.device and not is_launch(node),
        reaches=region.reaches,
        start=change.start,
        end=change.end,
        new=change.new,
    )


def _shown(before: str, after: str) -> tuple[str, str]:
    """Both on one line; where they are long, from shortly before the place where they part."""
    first, second = " ".join(before.split()), " ".join(after.split())
    if max(len(first), len(second)) <= _SHOWN:
        return first, second
    same = next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), 0)
    begin = max(0, same - _SHOWN // 3)
    return _cut(first, begin), _cut(second, begin)


def _cut(line: str, begin: int) -> str:
    begin = begin if len(line) - begin >= 2 else 0
    piece = ("…" if begin else "") + line[begin:]
    return piece if len(piece) <= _SHOWN else f"{piece[: _SHOWN - 1]}…"


def diff(mutant: Mutant, source: bytes) -> str:
    """The change as a unified diff with one line of context."""
    before, after = (
        code.decode("utf-8", "replace").splitlines(keepends=True) for code in (source, mutant.applied(source))
    )
    lines = difflib.unified_diff(before, after, mutant.file, f"{mutant.file} ({mutant.id})", n=1)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def chosen(found: tuple[Mutant, ...], only: tuple[str, ...], limit: int, seed: str) -> tuple[Mutant, ...]:
    """Those asked for by id or number; else at most `limit` (0: all), spread evenly over functions and operators."""
    if only:
        return tuple(_named(found, name) for name in only)
    if not limit or limit >= len(found):
        return found
    groups: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for mutant in found:
        groups[mutant.function, mutant.operator].append(mutant)
    dice = random.Random(f"{seed}/{found[0].kernel}")
    for group in groups.values():
        dice.shuffle(group)
    queues = list(groups.values())
    dice.shuffle(queues)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*queues))
    return tuple(sorted(itertools.islice(filter(None, turns), limit), key=lambda mutant: mutant.number))


def _named(found: tuple[Mutant, ...], name: str) -> Mutant:
    number = name.rpartition("#")[2]
    for mutant in found:
        if mutant.id == name or (number.isdigit() and int(number) == mutant.number and name in (number, mutant.id)):
            return mutant
    last = found[-1].id if found else "none"
    raise ConfigError(f"no mutant {name!r}", hint=f"`kernelci mutate KERNEL --list` shows them; the last is {last}")
