"""dump: what the compiler made, for people and diffs: IR at every level, PTX, SASS, CUBIN, and CUDA C++ sources.

With a base: how its builds differ from the base's, and why they may be slower. And whether the machine code has what
the reference requires.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from kernelci import footprint, gpus
from kernelci.compiling.builder import Compiled
from kernelci.dumps import comparing, difference, requirements
from kernelci.dumps.anatomy import Anatomy, dissect
from kernelci.dumps.comparing import Compared
from kernelci.dumps.sass import Instruction
from kernelci.dumps.specimen import FOLDER, RECORD, Specimen, written
from kernelci.errors import Stop
from kernelci.model import Artifact, Metric, Row, Unit
from kernelci.reasons import Outcome
from kernelci.rungs import Findings, Referee, failed, kept, rung, safe

NOTES = 12  # of a row
Made = tuple[Compiled, Specimen]


@rung("dump", after=("compile",))
def dump(referee: Referee) -> Findings:
    """Files under dumps/<kernel>/<case>/<target>/, and a row per build."""
    found = Findings()
    for target in referee.targets:
        made = _made(referee, target)
        pairs = comparing.paired(_base(referee, target, found.notes), [specimen for _, specimen in made])
        before = {head.place: base for base, head in pairs.pairs}
        found.notes += [f"{place}: only in base" for place in pairs.only_base]
        for build, specimen in made:
            base = before.get(specimen.place)
            compared = comparing.compare(base, specimen) if base is not None else None
            found.artifacts += _write(referee, build, specimen)
            if base is not None and compared is not None and not compared.identical:
                found.artifacts += _differences(referee, base, specimen)
            found.rows.append(_row(referee, build, specimen, target, compared))
    return found


def _made(referee: Referee, target: str) -> list[Made]:
    """The builds for a target, each under a name that no other has."""
    taken: set[str] = set()
    found = []
    for build in referee.compiled(target).builds:
        folder = f"{referee.kernel.name}/{safe(build.kernel.case or 'any')}/{target}"
        stem = place = f"{folder}/{safe(build.kernel.symbol)[:80]}"
        while place in taken:
            place = f"{stem}.{len(taken) + 1}"
        taken.add(place)
        found.append((build, footprint.specimen(build, target, place)))
    return found


def _base(referee: Referee, target: str, notes: list[str]) -> list[Specimen]:
    """The base's builds; none where there is no base, or it does not compile."""
    if referee.base is None:
        return []
    try:
        referee.base.compiled(target).raise_stop()
        return [specimen for _, specimen in _made(referee.base, target)]
    except Stop as stop:
        notes.append(f"{target}: no comparison: base ends as {stop.reason}")
        return []


def _row(referee: Referee, build: Compiled, specimen: Specimen, target: str, compared: Compared | None) -> Row:
    code = specimen.code()
    anatomy = dissect(code)
    notes = (*(compared.notes()[:NOTES] if compared is not None else ()), *_spills(anatomy))  # the cause comes first
    row = Row(Outcome.PASSED, build.kernel.case, target, metrics=tuple(_metrics(anatomy, compared)), notes=notes)
    fault = _fault(referee, build.kernel.case, code, target)
    if fault is None:
        return row
    judged = failed(referee, fault, target=target, rung="dump")
    return replace(row, outcome=judged.outcome, finding=judged.finding)


def _fault(referee: Referee, case_id: str, code: tuple[Instruction, ...], target: str) -> Stop | None:
    """What the reference requires or forbids and the machine code does not keep to. Raises Stop("reference")."""
    case = referee.reference.case_of(case_id) if code else None
    if case is None:
        return None
    gpu = gpus.for_target(target)
    requires, forbids = referee.reference.requires(case), referee.reference.forbids(case)
    for word in (*requires, *forbids):
        if not requirements.is_known(word, gpus.types()):
            raise Stop("reference", f"{referee.reference.path.name}: {word!r} names no opcode and no class of them")
    for word in requirements.unmet(requires, code, gpu, target):
        has = dissect(code).tensor or "none"
        return Stop("required-opcode", f"no {word} in the machine code for {target}; tensor core instructions: {has}")
    for word, each in requirements.broken(forbids, code, target):
        where = f" (line {each.line} of {each.file})" if each.line else ""
        return Stop("forbidden-opcode", f"{word} in the machine code for {target}: {each.opcode}{where}")
    return None


def _spills(anatomy: Anatomy) -> Iterator[str]:
    """What is to be said of a kernel that is right and keeps values in memory because registers ran out."""
    if anatomy.spills:
        yield f"registers spill: {anatomy.spills} loads and stores of the stack"


def _metrics(anatomy: Anatomy, compared: Compared | None) -> Iterator[Metric]:
    """What the machine code is; and what differs from base's."""
    yield Metric("instructions", anatomy.instructions, Unit.COUNT, "instructions", "each once, loops too")
    if width := anatomy.width("global load"):
        yield Metric("load_bits", width, Unit.COUNT, "load width", "bits a thread, in which most bytes are loaded")
    if anatomy.multiplications:
        count = sum(anatomy.multiplications.values())
        yield Metric("tensor", count, Unit.COUNT, "tensor core", anatomy.tensor[:1000])
    if anatomy.spills:
        yield Metric("spills", anatomy.spills, Unit.COUNT, "spills", "loads and stores of the stack")
    for figure in compared.figures if compared is not None else ():
        for side, value in (("base", figure.base), ("head", figure.head)):
            yield Metric(f"{figure.tag}_{side}", value, figure.unit, f"{figure.name}, {side}")


def _write(referee: Referee, build: Compiled, specimen: Specimen) -> list[Artifact]:
    found = [_file(referee, specimen.place, f".{safe(name)}", content) for name, content in sorted(build.files.items())]
    return [*found, _file(referee, specimen.place, RECORD, written(specimen.record))]


def _differences(referee: Referee, base: Specimen, head: Specimen) -> list[Artifact]:
    """Readable differences of machine code and of PTX, where there are any."""
    found = (
        (".sass.diff", difference.of_sass(base.code(), head.code())),
        (".ptx.diff", difference.of_ptx(base.ptx, head.ptx)),
    )
    return [_file(referee, head.place, ending, difference.text(lines).encode()) for ending, lines in found if lines]


def _file(referee: Referee, place: str, ending: str, content: bytes) -> Artifact:
    return kept(referee, Path(FOLDER) / f"{place}{ending}", content, ending[1:])
