"""What a kernel takes of the machine, read from its cubins, and how base and head compare in that: exactly, no clock.

Machine code is compared by its bytes, without names, so a copy under another name is seen as one.
"""

import hashlib
import math
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from kernelci import gpus
from kernelci.compiling.builder import Compilation, Compiled
from kernelci.dumps.specimen import Record, Specimen
from kernelci.model import Metric, Unit
from kernelci.pairing import matched
from kernelci.workbench import cubin, elf

# Sections that decide what a kernel computes, by the beginnings of their names: code, and the data that it starts with.
DECIDING = (".text", ".nv.constant", ".nv.global", ".nv.shared", ".rel", ".nv.uft", ".nv.udt")
NOTES = 20


class Delta(Struct, frozen=True):
    """One figure of a build that differs between the sides; `unit` as in the metric of this tag."""

    case: str
    config: str
    tag: str
    name: str
    unit: Unit
    base: float
    head: float

    def text(self) -> str:
        """`registers 64 -> 96`."""
        unit = " bytes" if self.unit is Unit.BYTES else ""
        return f"{self.name} {_number(self.base)} -> {_number(self.head)}{unit}"


class Footprint(Struct, frozen=True):
    """Base against head on one target, over the builds that both have."""

    target: str
    deltas: tuple[Delta, ...]
    identical: bool
    """Whether all machine code is the same on both sides, byte for byte, with the data that it starts with."""
    same_launches: bool
    """Whether grids, blocks and dynamic shared memory are the same too, in the cases that were compiled."""
    only_base: tuple[str, ...] = ()
    only_head: tuple[str, ...] = ()
    """Builds (case and configuration) that one side alone has."""
    compile_s: tuple[float, float] = (0.0, 0.0)

    def metrics(self) -> tuple[Metric, ...]:
        """Each figure that differs, the largest of each side's builds; and how long compiling took."""
        found: list[Metric] = []
        for tag in dict.fromkeys(delta.tag for delta in self.deltas):
            same = [delta for delta in self.deltas if delta.tag == tag]
            for side in ("base", "head"):
                value = max(getattr(delta, side) for delta in same)
                text = "the largest of the builds that differ"
                found.append(Metric(f"{tag}_{side}", value, same[0].unit, f"{same[0].name}, {side}", text))
        for side, seconds in zip(("base", "head"), self.compile_s, strict=True):
            if seconds:
                text = f"of all builds for {self.target}, when they were last made"
                found.append(Metric(f"compile_time_{side}", seconds, Unit.SECONDS, f"compile time, {side}", text))
        return tuple(found)

    def notes(self) -> tuple[str, ...]:
        """What differs in words, a line per build."""
        if self.identical:
            launches = "" if self.same_launches else "; launches differ"
            return (f"machine code is identical to base's{launches}",)
        lines: dict[tuple[str, str], list[str]] = {}
        for delta in self.deltas:
            lines.setdefault((delta.case, delta.config), []).append(delta.text())
        found = [f"{_where(*key)}: {', '.join(texts)}" for key, texts in lines.items()]
        found += [f"{where}: only in {side}" for side, only in self._only() for where in only]
        more = (f"and {len(found) - NOTES} more builds",) if len(found) > NOTES else ()
        return (*found[:NOTES], *more) or ("machine code differs from base's, resources don't",)

    def _only(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("base", self.only_base), ("head", self.only_head)


def record(build: Compiled, target: str) -> Record:
    """What stands beside a build's dump."""
    kernel, own = build.kernel, _own(build)
    known = Record(
        kernel.symbol[:4000], kernel.config[:4000], kernel.block, kernel.grid,
        dynamic_shared_bytes=kernel.dynamic_shared_bytes,
    )  # fmt: skip
    if own is None:
        return known
    fit = _fit(own, build, target)
    return msgspec.structs.replace(
        known,
        registers=own.registers,
        stack_bytes=own.stack_bytes,
        static_shared_bytes=own.static_shared_bytes,
        code_bytes=own.code_bytes,
        barriers=own.barriers,
        occupancy=fit.warps_share if fit else None,
        limiter=fit.limiter if fit else "",
    )


def specimen(build: Compiled, target: str, place: str) -> Specimen:
    """A build with its machine code, to be compared; `place` is where its dump stands."""
    texts = (build.files.get(name, b"").decode(errors="replace") for name in ("sass", "ptx"))
    return Specimen(place, record(build, target), *texts)


def _own(build: Compiled) -> cubin.KernelResources | None:
    """The resources of the build's own kernel among those of its cubin."""
    own = next((found for found in build.resources if found.symbol == build.kernel.symbol), None)
    return own or (build.resources[0] if build.resources else None)


def _fit(found: cubin.KernelResources, build: Compiled, target: str) -> cubin.Occupancy | None:
    """The occupancy, where the block's size is known."""
    if build.kernel.block is None:
        return None
    threads = math.prod(build.kernel.block)
    return cubin.occupancy(found, threads, gpus.for_target(target), build.kernel.dynamic_shared_bytes)


def figures(build: Compiled, target: str) -> tuple[Metric, ...]:
    """A build's registers, memory, code size and occupancy; empty where its cubin can't be read."""
    own = _own(build)
    return (*_resources(own), *_launch(own, build, target)) if own else ()


def _resources(found: cubin.KernelResources) -> tuple[Metric, ...]:
    return (
        Metric("registers", found.registers, Unit.COUNT, "registers", "per thread"),
        Metric("stack", found.stack_bytes, Unit.BYTES, "stack", "per thread: spills, local arrays, call frames"),
        Metric("static_shared", found.static_shared_bytes, Unit.BYTES, "static shared memory", "per block"),
        Metric("code", found.code_bytes, Unit.BYTES, "code size", "machine code of the kernel"),
    )


def _launch(found: cubin.KernelResources, build: Compiled, target: str) -> tuple[Metric, ...]:
    dynamic_bytes = build.kernel.dynamic_shared_bytes
    dynamic = Metric("dynamic_shared", dynamic_bytes, Unit.BYTES, "dynamic shared memory", "per block")
    fit = _fit(found, build, target)
    if fit is None:
        return (dynamic,)
    text = f"of the warps of an SM; limit: {fit.limiter}"
    return (dynamic, Metric("occupancy", fit.warps_share, Unit.FRACTION, "occupancy", text))


def compare(base: Compilation, head: Compilation) -> Footprint:
    """Both sides' builds for one target. A side that does not compile has no builds."""
    pairs, only_base, only_head = matched(base.builds, head.builds, (_full_name, _case))
    complete = bool(pairs) and not only_base and not only_head
    return Footprint(
        head.target,
        tuple(delta for one, other in pairs for delta in _deltas(one, other, head.target)),
        complete and all(_same_code(one, other) for one, other in pairs),
        complete and all(_launched(one) == _launched(other) for one, other in pairs),
        tuple(_where(build.kernel.case, build.kernel.config) for build in only_base),
        tuple(_where(build.kernel.case, build.kernel.config) for build in only_head),
        (base.duration_s, head.duration_s),
    )


def _full_name(build: Compiled) -> tuple[str, ...]:
    return build.kernel.case, build.kernel.symbol, build.kernel.config


def _case(build: Compiled) -> tuple[str, ...]:
    return (build.kernel.case,)


def _deltas(base: Compiled, head: Compiled, target: str) -> Iterable[Delta]:
    before = {metric.tag: metric.value for metric in figures(base, target)}
    for metric in figures(head, target):
        old, new = before.get(metric.tag), metric.value
        if old is not None and old != new and not isinstance(old, str) and not isinstance(new, str):
            yield Delta(head.kernel.case, head.kernel.config, metric.tag, metric.name, metric.unit, old, new)


def _same_code(base: Compiled, head: Compiled) -> bool:
    before, now = code_hash(base), code_hash(head)
    return bool(before) and before == now


def code_hash(build: Compiled) -> str:
    """A hash of a cubin's code and initial data without any names; empty where there is no cubin that can be read."""
    try:
        found = elf.sections(build.files.get("cubin", b""))
    except elf.BrokenElf:
        return ""
    deciding = [one for one in found if one.name.startswith(DECIDING) and ".debug" not in one.name]  # not line numbers
    parts = sorted((_kind(one.name), one.size, one.content) for one in deciding)
    if not any(kind == ".text" for kind, _, _ in parts):
        return ""
    digest = hashlib.sha256()
    for kind, size, content in parts:
        digest.update(f"{kind} {size} {len(content)} ".encode() + content)
    registers = sorted((one.registers, one.stack_bytes, one.barriers) for one in build.resources)
    digest.update(repr(registers).encode())
    return digest.hexdigest()


def _kind(section: str) -> str:
    """`.text.softmax` as `.text`, `.nv.constant0.softmax` as `.nv.constant0`."""
    parts = section.split(".")
    return ".".join(parts[: 3 if section.startswith((".nv.", ".rel")) else 2])


def _launched(build: Compiled) -> tuple[object, ...]:
    kernel = build.kernel
    return kernel.block, kernel.grid, kernel.dynamic_shared_bytes


def _where(case: str, config: str) -> str:
    return f"{case or 'any case'} ({config})" if config else case or "any case"


def _number(value: float) -> str:
    return f"{value:g}" if value < 1e6 else f"{value:.0f}"
