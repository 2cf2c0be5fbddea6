"""A reference that is quick anywhere."""

from pathlib import Path

import pytest

from kernelci.reference import Reference, load

REFERENCE = """
from kernelci.reference import bench, check, like
def cases():
    yield check(rows=2, cols=5, dtype="float32")
    yield bench("a few", rows=3, cols=17, dtype="float32")
    yield bench("more", rows=5, cols=17, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
def cost(case):
    return case.rows * case.cols
"""


@pytest.fixture
def adding() -> str:
    """The file of a reference that adds one, with two bench cases."""
    return REFERENCE


@pytest.fixture
def reference(tmp_path: Path, adding: str) -> Reference:
    """Adds one."""
    path = tmp_path / "add.py"
    path.write_text(adding, encoding="utf-8")
    return load(path)
