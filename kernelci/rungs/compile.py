"""compile: machine code for each target, without a GPU; registers, spills, shared memory, code size from the cubin."""

from kernelci import footprint
from kernelci.compiling.builder import Compiled
from kernelci.errors import Verdict
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
            compilation.raise_verdict()
        except Verdict as verdict:
            rows.append(failed(referee, verdict, target=target, rung="compile"))
            continue
        rows += [_row(build, target, tuple(compilation.notes)) for build in compilation.builds]
    return Findings(rows=rows)


def _row(build: Compiled, target: str, notes: tuple[str, ...]) -> Row:
    kernel = build.kernel
    said = (f"{kernel.symbol}: {kernel.config}", *notes)
    return Row(Outcome.PASSED, kernel.case, target, metrics=footprint.figures(build, target), notes=said)
