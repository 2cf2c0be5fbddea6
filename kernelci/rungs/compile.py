"""compile: machine code for each target, without a GPU; registers, spills, shared memory, code size from the cubin."""

from msgspec.structs import replace

from kernelci import footprint, gpus
from kernelci.compiling.builder import Compilation, Compiled
from kernelci.dumps import addresses, launches
from kernelci.errors import Stop
from kernelci.model import Row
from kernelci.reasons import Outcome
from kernelci.rungs import Findings, Referee, failed, rung


@rung("compile", after=("precheck",))
def compile_kernel(referee: Referee) -> Findings:
    """One row per target and distinct build."""
    rows: list[Row] = []
    for target in referee.targets:
        compilation = referee.compiled(target)
        try:
            compilation.raise_stop()
        except Stop as stop:
            rows.append(failed(referee, stop, target=target, rung="compile"))
            continue
        rows += [_row(referee, build, target, tuple(compilation.notes)) for build in compilation.builds]
        rows += _launches(referee, compilation, target)
    return Findings(rows=rows)


def _row(referee: Referee, build: Compiled, target: str, notes: tuple[str, ...]) -> Row:
    kernel, gpu = build.kernel, gpus.for_target(target)
    ptx = build.files.get("ptx", b"").decode(errors="replace")
    remarks = (*map(_offset, addresses.products(ptx)), *launches.remarks(footprint.record(build, target), gpu, ptx))
    said = (f"{kernel.symbol}: {kernel.config}", *notes, *remarks)
    row = Row(Outcome.PASSED, kernel.case, target, metrics=footprint.figures(build, target), notes=said)
    beyond = launches.refused(kernel.grid, kernel.block, gpu, _wraps(referee))
    return _refused(referee, row, kernel.symbol, beyond) if beyond else row


def _launches(referee: Referee, compilation: Compilation, target: str) -> list[Row]:
    """A row for each case whose launch no GPU of this kind would take, in its own size."""
    found = (
        (one, launches.refused(one.grid, None, gpus.for_target(target), _wraps(referee)))
        for one in compilation.launches
    )
    return [
        _refused(referee, Row(Outcome.PASSED, one.case, target), one.symbol, beyond) for one, beyond in found if beyond
    ]


def _refused(referee: Referee, row: Row, symbol: str, beyond: str) -> Row:
    stop = Stop("launch-limit", f"{symbol} on {row.case or 'any case'}: {beyond}")
    judged = failed(referee, stop, target=row.target, rung="compile")
    return replace(row, outcome=judged.outcome, finding=judged.finding)


def _wraps(referee: Referee) -> bool:
    return referee.kernel.backend == "triton"


def _offset(found: addresses.Product) -> str:
    where = f"line {found.line} of {found.file}: " if found.line else ""
    return (
        f"{where}an offset is a block's index times an argument in 32 bits: it wraps where a tensor has 2^31 elements"
    )
