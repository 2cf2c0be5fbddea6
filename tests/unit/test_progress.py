import io
from types import ModuleType

import pytest
from rich.console import Console

from kernelci import progress
from kernelci.model import Finding, RungResult
from kernelci.reasons import Outcome


def test_a_result_is_one_plain_line_where_there_is_no_terminal(reports: ModuleType) -> None:
    buffer = io.StringIO()

    with progress.Live(Console(file=buffer)) as live:
        live(reports.kernel("softmax/triton"), reports.compiled(*["sm_90a"] * 9))

    assert "softmax/triton  compile  PASSED  7.8 s  9 rows\n" == buffer.getvalue()


@pytest.mark.parametrize(
    ("rung", "expected"),
    [
        (RungResult("run", Outcome.SKIPPED, finding=Finding("no-gpu", "no GPU")), "a/b  run  SKIPPED  needs a GPU"),
        (
            RungResult("run", Outcome.FAILED, 3.0, Finding("hang", "x")),
            "a/b  run  FAILED  3.0 s  did not return before the deadline",
        ),
        (RungResult("dump", Outcome.PASSED, 0.1), "a/b  dump  PASSED  0.1 s"),
    ],
)
def test_plain_lines_say_why(rung: RungResult, expected: str) -> None:
    assert expected == progress.plain("a/b", rung)


def test_progress_on_a_terminal_is_a_table_that_goes_away(reports: ModuleType) -> None:
    buffer = io.StringIO()
    terminal = Console(file=buffer, force_terminal=True, width=80, height=10, color_system=None, _environ={})

    with progress.Live(terminal) as live:
        for number in range(30):
            live(reports.kernel(f"a/k{number}"), reports.compiled("sm_90a"))
        shown = buffer.getvalue()

    assert "✓ passed" in shown
    assert "a/k29" in shown
    assert "\x1b[?25h" in buffer.getvalue()[len(shown) :]  # the cursor is back
