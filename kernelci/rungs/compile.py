"""compile: machine code for each target, without a GPU; registers, spills, shared memory, code size from the cubin."""

from kernelci import gpus
from kernelci.compiling.builder import Compiled
from kernelci.errors import Verdict
from kernelci.model import Metric, Row, Unit
from kernelci.reasons import Outcome
from kernelci.rungs import Findings, Referee, failed, rung
from kernelci.workbench import cubin


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
    own = next((found for found in build.resources if found.symbol == kernel.symbol), None)
    own = own or (build.resources[0] if build.resources else None)
    metrics = (*_metrics(own), *_occupancy(own, build, target)) if own else ()
    return Row(
        Outcome.PASSED, kernel.case, target, metrics=metrics, notes=(f"{kernel.symbol}: {kernel.config}", *notes)
    )


def _metrics(found: cubin.KernelResources) -> tuple[Metric, ...]:
    return (
        Metric("registers", found.registers, Unit.COUNT, "registers", "per thread"),
        Metric("stack", found.stack_bytes, Unit.BYTES, "stack", "per thread: spills, local arrays, call frames"),
        Metric("static_shared", found.static_shared_bytes, Unit.BYTES, "static shared memory", "per block"),
        Metric("code", found.code_bytes, Unit.BYTES, "code size", "machine code of the kernel"),
    )


def _occupancy(found: cubin.KernelResources, build: Compiled, target: str) -> tuple[Metric, ...]:
    dynamic = Metric(
        "dynamic_shared", build.kernel.dynamic_shared_bytes, Unit.BYTES, "dynamic shared memory", "per block"
    )
    if build.kernel.block is None:
        return (dynamic,)
    x, y, z = build.kernel.block
    fit = cubin.occupancy(found, x * y * z, gpus.for_target(target), build.kernel.dynamic_shared_bytes)
    return (
        dynamic,
        Metric(
            "occupancy", fit.warps_share, Unit.FRACTION, "occupancy", f"of the warps of an SM; limit: {fit.limiter}"
        ),
    )
