"""sanitize: a few small cases under NVIDIA's compute-sanitizer, which sees what outputs don't show: accesses beyond a
tensor, races in shared memory, reads of what nobody wrote, barriers that not all threads reach."""

from concurrent.futures import ThreadPoolExecutor

from kernelci.compiling.builder import call_of
from kernelci.errors import Stop
from kernelci.model import Row
from kernelci.reasons import Outcome
from kernelci.reference import Case
from kernelci.rungs import Findings, Referee, failed, rung
from kernelci.workbench import sanitizer

CASES = {"full": 4}
FEW_CASES = 3


@rung("sanitize", after=("correctness",), needs=("gpu",))
def sanitize(referee: Referee) -> Findings:
    """One row per tool; the pull-request tier runs two of them, the full tier all. They run side by side."""
    if sanitizer.find() is None:
        raise Stop("no-sanitizer", "compute-sanitizer is neither on PATH nor in a CUDA toolkit here")
    tools = tuple(sanitizer.TOOLS) if referee.tier == "full" else sanitizer.QUICK
    cases = _cases(referee)
    if not cases:
        raise Stop("cost", f"no check case has at most {sanitizer.ELEMENTS} elements")
    with ThreadPoolExecutor(len(tools), thread_name_prefix="sanitize") as threads:
        return Findings(rows=list(threads.map(lambda tool: _row(referee, tool, cases), tools)))


def _cases(referee: Referee) -> tuple[Case, ...]:
    reference = referee.reference
    return sanitizer.choose(
        referee.cases(),
        lambda case: call_of(reference, case),
        lambda case: reference.cost(case, {}, {}).flops,
        CASES.get(referee.tier, FEW_CASES),
    )


def _row(referee: Referee, tool: str, cases: tuple[Case, ...]) -> Row:
    found = referee.inspect(tool, cases)
    stop = sanitizer.judge(found)
    if stop is None:
        return Row(Outcome.PASSED, tool, notes=sanitizer.notes(found))
    row = failed(referee, stop, rung="sanitize")
    return Row(row.outcome, tool, finding=row.finding, notes=(f"cases: {', '.join(case.id for case in cases)}",))
