"""A report recorded on an H200 (2026-11-30; twelve kernels up to benchmark, trace, roofline) as reporters show it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelci import reporters, results
from kernelci.reasons import Outcome

RECORDED = Path(__file__).resolve().parents[2] / "golden" / "h200" / "results.json"


def test_it_is_still_read() -> None:
    report = results.read(RECORDED)
    assert (Outcome.PASSED, 12, "NVIDIA H200") == (report.outcome, len(report.kernels), report.environment.gpu)


@pytest.mark.parametrize(("name", "ending"), [("console", "txt"), ("markdown", "md"), ("junit", "xml")])
def test_how_it_is_shown(golden: Callable[[str, str], None], tmp_path: Path, name: str, ending: str) -> None:
    golden(f"h200/{name}.{ending}", reporters.render(name, results.read(RECORDED), tmp_path))
