"""How large a case is, and which device and tier take it."""

from pathlib import Path

import pytest

from kernelci import extent
from kernelci.config import Config
from kernelci.reference import Case, Reference, check, load

TEXT = """
from kernelci.reference import check, like, tensor
def cases(): yield check(rows=4, cols=32, dtype="bfloat16")
def inputs(case, draw): return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype), "k": 2.0}
def outputs(case): return {"y": tensor(case.rows, dtype=case.dtype)}
def reference(x, k): return x.sum(-1)
def cost(case): return 1000 * case.rows
"""


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    path = tmp_path / "sums.py"
    path.write_text(TEXT, encoding="utf-8")
    return load(path)


@pytest.fixture
def case(reference: Reference) -> Case:
    return reference.cases()[0]


def test_scalars_take_no_room(reference: Reference, case: Case) -> None:
    assert (4 * 32 + 4, 4, 4 + 1, 4000.0) == extent.extent(reference, case)


@pytest.mark.parametrize(
    ("options", "interpreted", "reason"),
    [
        (Config(interpreter_elements=132), True, ""),
        (Config(interpreter_elements=131), True, "interpreter-cost"),
        (Config(interpreter_flops=3999.0), True, "interpreter-cost"),
        (Config(interpreter_rows=5), True, ""),
        (Config(interpreter_rows=4), True, "interpreter-cost"),
        (Config(interpreter_rows=4), False, ""),
        (Config(case_elements=4, interpreter_elements=1), False, ""),
        (Config(case_elements=3), False, "cost"),
    ],
)
def test_caps(reference: Reference, case: Case, options: Config, interpreted: bool, reason: str) -> None:
    found = extent.beyond(reference, case, options, "pr", interpreted)
    assert reason == (found.reason if found else "")


def test_the_full_tier_takes_more(reference: Reference, case: Case) -> None:
    options = Config(interpreter_elements=131)
    assert extent.beyond(reference, case, options, "full", interpreted=True) is None


def test_the_full_tier_takes_no_more_rows(reference: Reference, case: Case) -> None:
    found = extent.beyond(reference, case, Config(interpreter_rows=4), "full", interpreted=True)
    assert found is not None
    assert "5 rows in all tensors; the cap is 4" == found.message


def test_rows_of_nothing_are_none(tmp_path: Path) -> None:
    path = tmp_path / "sums.py"
    path.write_text(TEXT.replace("rows=4, cols=32", "rows=4, cols=0"), encoding="utf-8")
    empty = load(path)
    assert 1 == extent.extent(empty, empty.cases()[0]).rows


@pytest.mark.parametrize(
    ("dtype", "interpreted", "expected"),
    [
        ("bfloat16", True, "run with float16 data: the interpreter has no right bfloat16"),
        ("bfloat16", False, ""),
        ("float32", True, ""),
    ],
)
def test_what_the_interpreter_can_not_compute_runs_with_other_data(
    dtype: str, interpreted: bool, expected: str
) -> None:
    assert expected == extent.substitution(check(n=1, dtype=dtype), interpreted)
