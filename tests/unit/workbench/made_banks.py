"""References whose slots are tested, and what an honest kernel does in them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernelci.errors import Stop
from kernelci.reference import Reference
from kernelci.workbench import oracle
from kernelci.workbench.slots import Bank

Written = Callable[[str], Reference]
MakeBank = Callable[..., Bank]
COUNT = 7
SCALED = """
def cases():
    yield bench("a few", rows=4, cols=33, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype), "k": 3.0}
def outputs(case):
    return {"y": like("x")}
def reference(x, k):
    return x * k
"""
ROWS = SCALED + '\nindependent = {"rows": ("x",)}\n'
FP8 = SCALED.replace('dtype="float32"', 'dtype="float8_e4m3fn"')
ALONE = SCALED.replace("dtype=case.dtype)", "dtype=case.dtype).abs()")
DATA_DEPENDENT = ROWS.replace("return x * k", "return x * k if float(x.sum()) > 0 else k * x")
IN_PLACE = SCALED.replace('{"y": like("x")}', '{"x": alias("x")}')
INTEGERS = """
def cases():
    yield bench("a few", rows=4, cols=33)
def inputs(case, draw):
    return {"x": draw.integers(case.rows, case.cols, low=-99, high=99, dtype=torch.int32)}
def outputs(case):
    return {"y": like("x"), "positive": tensor(case.rows, case.cols, dtype=torch.bool)}
def reference(x):
    return x + 1, x > 0
"""
PRODUCT = """
independent = {"m": ("a",), "n": ("b",)}
def cases():
    yield bench("a few", m=4, n=24, k=16, dtype="bfloat16")
def inputs(case, draw):
    return {"a": draw.normal(case.m, case.k, dtype=case.dtype), "b": draw.normal(case.n, case.k, dtype=case.dtype)}
def outputs(case):
    return {"c": tensor(case.m, case.n, dtype=case.dtype)}
def reference(a, b):
    return a @ b.T
"""
TURNED = PRODUCT.replace("tensor(case.m, case.n,", "tensor(case.n, case.m,").replace("a @ b.T", "b @ a.T")
NUMBERS = """
def cases():
    yield bench("counting", size=33)
def inputs(case, draw):
    return {"size": case.size}
def outputs(case):
    return {"y": tensor(case.size, dtype="float32")}
def reference(size):
    return torch.arange(size, dtype=torch.float32)
"""
SUMMED = """
independent = {"rows": ("x",)}
def cases():
    yield bench("a few", rows=9, cols=33, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x"), "total": tensor(case.cols, dtype=case.dtype)}
def reference(x):
    return 2 * x, x.sum(0)
"""
PRODUCT_AND_ROWS = PRODUCT.replace(
    "case.n, dtype=case.dtype)}\ndef ref", 'case.n, dtype=case.dtype), "r": tensor(case.m, dtype=case.dtype)}\ndef ref'
).replace("a @ b.T", "a @ b.T, (a @ b.T).sum(-1)")
KINDS = {
    "no size is independent": SCALED,
    "rows are independent": ROWS,
    "fp8": FP8,
    "drawn alone": ALONE,
    "asks for values": DATA_DEPENDENT,
    "in place": IN_PLACE,
    "integers and booleans": INTEGERS,
    "rows and columns are independent": PRODUCT,
    "rows and columns, turned": TURNED,
    "one output is a sum over all rows": SUMMED,
    "one output has no columns": PRODUCT_AND_ROWS,
    "scalars only": NUMBERS,
}


def inputs(bank: Bank) -> dict[str, Any]:
    """What a kernel finds in each slot."""
    return {**bank.layout.scalars, **{name: bank.slots_of(name) for name in bank.layout.specs}}


def as_bits(values: torch.Tensor) -> torch.Tensor:
    """Values of one byte as integers."""
    return values.view(torch.uint8) if values.dtype.itemsize == 1 else values


def answer(bank: Bank, count: int = COUNT) -> None:
    """Do what an honest kernel does in the first slots."""
    for slot in range(count):
        values = {
            name: value[slot] if isinstance(value, torch.Tensor) else value for name, value in inputs(bank).items()
        }
        truth = oracle.ask(bank.reference, values, bank.layout.outputs)
        for name in bank.layout.outputs:
            as_bits(bank.slots_of(name))[slot].copy_(as_bits(truth.honest[name]))


def wrong(bank: Bank, count: int = COUNT) -> str:
    """What is said of a window that is wrong."""
    with pytest.raises(Stop) as caught:
        bank.check(count)
    assert "wrong-while-timed" == caught.value.reason
    return caught.value.message
