"""Cases beyond a limit of elements: made from the domain, and checked on chosen entries. Here the limit is small."""

from collections.abc import Callable

import pytest

from kernelci.errors import Stop
from kernelci.reference import Reference
from kernelci.workbench import limits
from kernelci.workbench.session import Session

Written = Callable[[str], Reference]
MakeSession = Callable[..., Session]
ROWS = """
from kernelci.reference import check, sizes
domain = {"rows": sizes(1, 500), "cols": sizes(4, 400, 4)}
independent = {"rows": ("x",)}
def cases():
    yield check(rows=3, cols=8, dtype="float32")
    yield check(rows=3, cols=8, dtype="float16")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return 2 * x
"""
RIGHT = "y.copy_(2 * x)"
WRAPPED = "y.copy_(2 * x); y.view(-1)[32768:] = y.view(-1)[:y.numel() - 32768].clone()"  # offsets in 15 bits
FIRST_TILE = "y.copy_(2 * x); y[17] = 0"


def test_the_smallest_case_beyond_the_limit(written: Written) -> None:
    found = limits.case_at(written(ROWS), 2**15)
    assert found is not None
    assert ("limit", 500, 68, "float16") == (
        found.kind,
        found.rows,
        found.cols,
        str(found.dtype).removeprefix("torch."),
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('independent = {"rows": ("x",)}', ""),
        ('{"y": like("x")}', '{"y": like("x"), "total": tensor(case.cols, dtype=case.dtype)}'),
        ('domain = {"rows": sizes(1, 500), "cols": sizes(4, 400, 4)}', ""),
        ("sizes(1, 500)", "sizes(1, 50)"),
    ],
)
def test_none_where_the_reference_allows_none(written: Written, old: str, new: str) -> None:
    assert limits.case_at(written(ROWS.replace(old, new)), 2**15) is None


@pytest.mark.parametrize(("body", "right"), [(RIGHT, True), (WRAPPED, False), (FIRST_TILE, False), ("pass", False)])
def test_judged(written: Written, session: MakeSession, body: str, right: bool) -> None:
    reference = written(ROWS)
    case = limits.case_at(reference, 2**15)
    assert case is not None
    said = ""
    try:
        limits.judge(session(f"def f(x, y):\n    {body}\n"), reference, case, "seed")
    except Stop as stop:
        said = stop.reason
    assert ("" if right else "wrong") == said
