"""What a person reads of a result; and the JSON."""

import json
from collections.abc import Callable

from kernelci.mutating import report
from kernelci.mutating.outcomes import Fate, Judged, Result, figures

DIFF = "--- triton.py\n+++ triton.py (softmax/triton#012)\n@@ -36 +36 @@\n-    a < b\n+    a <= b\n"


def _judged(number: int, fate: Fate, **other: str) -> Judged:
    return Judged(
        id=f"softmax/triton#{number:03}", operator="compare", function="softmax_tile", file="triton.py", line=36,
        before="<", after="<=", device_code=True, fate=fate, **other,
    )  # fmt: skip


FOUND = (
    _judged(12, Fate.SURVIVED, allclose="passed", allclose_one="passed", diff=DIFF),
    _judged(13, Fate.KILLED, rung="correctness", reason="wrong", allclose="passed", allclose_one="passed"),
    _judged(14, Fate.KILLED, rung="run", reason="out-of-bounds", allclose="failed", allclose_one="passed"),
    _judged(15, Fate.NOT_COMPILED, rung="compile", reason="compile-error"),
    _judged(16, Fate.BROKEN, rung="run", reason="reference", message="softmax.py: inputs() raised"),
)
RESULT = Result(
    kernel="softmax/triton", device="NVIDIA H200", seed="0", known=211, duration_s=61.5, figures=figures(FOUND),
    mutants=FOUND,
)  # fmt: skip


def test_text(golden: Callable[[str, str], None]) -> None:
    golden("mutants.txt", report.text(RESULT) + "\n")


def test_lines(golden: Callable[[str, str], None]) -> None:
    golden("mutants_progress.txt", "\n".join(map(report.line, FOUND)) + "\n")


def test_markdown(golden: Callable[[str, str], None]) -> None:
    rows = (*report.HEAD, report.markdown(RESULT), report.total([RESULT, RESULT]))
    golden("mutants.md", "\n".join(rows) + "\n")


def test_json() -> None:
    decoded = json.loads(report.encode(RESULT))
    assert ("softmax/triton", 5, "survived") == (
        decoded["kernel"], decoded["figures"]["mutants"], decoded["mutants"][0]["fate"],
    )  # fmt: skip
