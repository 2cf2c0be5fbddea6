"""What is left of the GPU time that the configuration grants a pull request. Pure."""

import msgspec

from kernelci.config import BudgetOptions
from kernelci.model import Budget, Report


def left(options: BudgetOptions, minutes: float, runs: int) -> Budget | None:
    """The budget after so many minutes and runs; None where there is none."""
    if not options.gpu_minutes and not options.runs:
        return None
    return Budget(
        options.gpu_minutes or None,
        round(max(options.gpu_minutes - minutes, 0.0), 2) if options.gpu_minutes else None,
        options.runs or None,
        max(options.runs - runs, 0) if options.runs else None,
    )


def stated(report: Report, options: BudgetOptions) -> Report:
    """The report with what this run alone leaves of the budget; a run without a GPU takes nothing of it."""
    on_gpu = bool(report.environment.gpu)
    minutes = report.duration_s / 60 if on_gpu else 0.0
    return msgspec.structs.replace(report, budget=left(options, minutes, int(on_gpu)))


def is_spent(found: Budget | None) -> bool:
    """Whether no further run may take GPU time."""
    return found is not None and 0 in (found.gpu_minutes_left, found.runs_left)


def sentence(found: Budget | None) -> str:
    """In words: `9.7 of 60 GPU minutes and 3 of 20 runs are left`."""
    if found is None:
        return "no budget is set"
    parts = []
    if found.gpu_minutes is not None and found.gpu_minutes_left is not None:
        parts.append(f"{found.gpu_minutes_left:g} of {found.gpu_minutes:g} GPU minutes")
    if found.runs is not None and found.runs_left is not None:
        parts.append(f"{found.runs_left} of {found.runs} runs")
    return f"{' and '.join(parts)} are left"
