"""What is left of a pull request's GPU time."""

import msgspec
import pytest

from kernelci import budget
from kernelci.config import BudgetOptions
from kernelci.hub.merge import merged_report
from kernelci.model import Budget

BOTH = BudgetOptions(gpu_minutes=10, runs=2)


@pytest.mark.parametrize(
    ("options", "taken", "expected"),
    [
        (BudgetOptions(), (99, 99), None),
        (BOTH, (0, 0), Budget(10, 10, 2, 2)),
        (BOTH, (3.456, 1), Budget(10, 6.54, 2, 1)),
        (BOTH, (11, 3), Budget(10, 0, 2, 0)),
        (BudgetOptions(runs=2), (11, 1), Budget(None, None, 2, 1)),
        (BudgetOptions(gpu_minutes=2), (1, 9), Budget(2, 1, None, None)),
    ],
)
def test_left(options: BudgetOptions, taken: tuple[float, int], expected: Budget | None) -> None:
    assert expected == budget.left(options, *taken)


@pytest.mark.parametrize(
    ("found", "spent"), [(None, False), (Budget(10, 1, 2, 1), False), (Budget(10, 0.0, 2, 1), True), (Budget(), False)]
)
def test_spent(found: Budget | None, spent: bool) -> None:
    assert spent == budget.is_spent(found)


def test_a_report_says_what_it_leaves(reports) -> None:
    one = msgspec.structs.replace(reports.all_green(), duration_s=90)
    report = budget.stated(one, BOTH)

    assert Budget(10, 8.5, 2, 1) == report.budget
    assert "8.5 of 10 GPU minutes and 1 of 2 runs are left" == budget.sentence(report.budget)


def test_a_machine_without_a_gpu_takes_nothing(reports) -> None:
    assert Budget(10, 10, 2, 2) == budget.stated(reports.compile_error(), BOTH).budget


def test_shards_take_together(reports) -> None:
    one = msgspec.structs.replace(reports.all_green(), duration_s=60)
    parts = [msgspec.structs.replace(one, kernels=(kernel,)) for kernel in one.kernels]

    merged = merged_report([budget.stated(part, BOTH) for part in parts], [str(n) for n in range(len(parts))])

    assert Budget(10, 7, 2, 1) == merged.budget
