"""NVIDIA's compute-sanitizer around a candidate of its own: which tools there are, one run, and what it means.

A kernel shares its process with the tool and could silence it: what the tool finds is evidence, what it does not find
proves nothing. That is why a kernel must have passed correctness before.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from kernelci.errors import GpuSick, RunnerBroken, Stop
from kernelci.reference import Case
from kernelci.workbench import instruments, trial
from kernelci.workbench.drawn import Drawn
from kernelci.workbench.protocol import Call, TensorPlace
from kernelci.workbench.sanitizer_report import ToolReport, parse
from kernelci.workbench.session import Session
from kernelci.workbench.single import Single

# The tools in the order in which their findings count, with the reason that each gives.
TOOLS = {
    "memcheck": "sanitizer-memcheck",
    "racecheck": "sanitizer-race",
    "initcheck": "sanitizer-initcheck",
    "synccheck": "sanitizer-sync",
}
QUICK = ("memcheck", "racecheck")
PRINTED = 100  # findings that the tool writes out
SHOWN = 5  # findings in a message
# Where CUDA's memory is not cached, every tensor is an allocation that the tool knows the size of.
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
AT_ONCE = max(4, (os.cpu_count() or 4) * 3 // 4)  # of all kernels; each imports torch first
ELEMENTS = 2**20  # read and written by a case: the tools make kernels up to a hundred times slower
FLOPS = 1e9
_RUNNING = threading.BoundedSemaphore(AT_ONCE)
Opened = tuple[Session, Single]
find = instruments.compute_sanitizer


class Inspection(Struct, frozen=True):
    """One tool's run over several calls. `stopped` is what ended it early, `tail` the end of the tool's own words."""

    tool: str
    report: ToolReport = ToolReport()
    cases: tuple[str, ...] = ()
    stopped: Stop | None = None
    tail: str = ""


def command(binary: Path, tool: str, report: str) -> list[str]:
    """The tool's part of the command line; what it says goes to the file `report`."""
    return [
        *(str(binary), "--tool", tool, "--log-file", report, "--print-limit", str(PRINTED)),
        *("--launch-timeout", "120", "--target-processes", "application-only", "--strip-paths", "no"),
        *("--show-backtrace", "device", *(("--report-api-errors", "no") if tool == "memcheck" else ())),
    ]


def choose(
    cases: Sequence[Case], call_of: Callable[[Case], Call], flops_of: Callable[[Case], float], count: int
) -> tuple[Case, ...]:
    """A few check cases, the largest that is small enough first, then those that are least like the chosen ones.

    The largest uses all warps and several blocks; unlike ones take other branches of the launcher and other builds.
    """
    sizes = {case: _elements(call_of(case)) for case in cases if case.kind == "check"}
    left = [case for case, size in sizes.items() if 0 < size <= ELEMENTS and flops_of(case) <= FLOPS]
    chosen: list[Case] = []
    while left and len(chosen) < count:
        taken = max(left, key=lambda case: (min((_unlike(case, one) for one in chosen), default=0), sizes[case]))
        chosen.append(taken)
        left.remove(taken)
    return tuple(chosen)


def _elements(call: Call) -> int:
    """Elements that a call reads and writes; 0 if it writes none."""
    shapes = [
        place.shape for place in (*call.arguments.values(), *call.outputs.values()) if isinstance(place, TensorPlace)
    ]
    total = 0
    for shape in shapes:
        count = 1
        for size in shape:
            count *= size
        if count == 0:
            return 0
        total += count
    return total


def _unlike(one: Case, other: Case) -> int:
    """In how many ways two cases differ that a kernel is likely to branch on."""
    return sum(ours != theirs for ours, theirs in zip(_features(one), _features(other), strict=False))


def _features(case: Case) -> list[object]:
    found: list[object] = []
    for _, value in case.values:
        sized = isinstance(value, int) and not isinstance(value, bool)
        found += [value.bit_length() // 3, value % 16 == 0, value & (value - 1) == 0] if sized else [value]
    return found


def inspect(tool: str, opened: Callable[[], Opened], drawn: Sequence[Drawn], limit_s: float) -> Inspection:
    """One call per drawn case under a tool, smallest first, up to one that has findings. Raises GpuSick; every other
    fault is in the result.

    What is wrong everywhere makes a tool write for each element: after a small case it has said enough, and a large one
    could take it beyond the deadline, with all that it had to say.
    """
    with _RUNNING:
        ends = time.monotonic() + limit_s
        session, single = opened()
        done: list[str] = []
        stopped: Stop | None = None
        try:
            with contextlib.closing(session):
                session.reserve(max((2 * one.bytes for one in drawn), default=0))
                for one in sorted(drawn, key=lambda one: one.bytes):
                    session.limits.call_s = session.limits.load_s = max(1.0, ends - time.monotonic())
                    trial.repeats(session, one, 1)
                    done.append(one.case.id)
                    if parse(single.reports()).errors:
                        break
        except GpuSick:
            raise
        except Stop as stop:
            stopped = stop
        except RunnerBroken as error:  # it did not come up, and it did without the tool
            stopped = Stop("candidate-start", error.message)
        finally:
            text = single.reports()
            single.close()
        return Inspection(tool, parse(text), tuple(done), stopped, text[-2000:])


def judge(found: Inspection) -> Stop | None:
    """What a run means for the kernel: findings fail it; a tool that can't do its work is skipped with its words."""
    errors, stopped = found.report.errors, found.stopped
    if errors:
        lines = [one.text() for one in errors[:SHOWN]]
        if len(errors) > SHOWN:
            lines.append(f"and {len(errors) - SHOWN} more places")
        place = errors[0].place
        return Stop(TOOLS[found.tool], "\n".join(lines), file=place.file, line=place.line, log=found.tail)
    said = "\n".join(found.report.other[-SHOWN:])
    if stopped is not None and stopped.reason == "hang":
        return Stop("sanitizer-slow", f"{found.tool}: {stopped.message}", log=found.tail)
    if stopped is not None:
        message = f"{found.tool}: without it the same calls pass; with it: {stopped.message}\n{said}".strip()
        return Stop("sanitizer-refused", message, log=stopped.log or found.tail)
    if found.report.total is None:
        return Stop("sanitizer-refused", f"{found.tool} came to no conclusion\n{said}".strip(), log=found.tail)
    return None


def notes(found: Inspection) -> tuple[str, ...]:
    """What a reader should know of a run that passed."""
    warnings = [one.text() for one in found.report.found if one.warning][:SHOWN]
    outside = [f"reported, but of no kernel's instruction: {head}" for head in found.report.other[:SHOWN]]
    return (f"cases: {', '.join(found.cases)}", *(f"warning: {text}" for text in warnings), *outside)
