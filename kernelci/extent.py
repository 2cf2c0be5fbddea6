"""How large a case is, whether a device and a tier take it, and with what data."""

import math
from typing import NamedTuple

from kernelci.compiling.builder import call_of
from kernelci.config import Config
from kernelci.errors import Stop
from kernelci.reference import Case, Reference
from kernelci.workbench.protocol import TensorPlace

FULL_TIER_TIMES = 16  # how much larger a case the full tier takes
# Triton's interpreter computes in NumPy, which has no bfloat16: additions give the sum of the bit patterns.
INTERPRETER_DTYPES = {"bfloat16": "float16"}
# The interpreter's time goes by programs, about 2 ms each, and hardly by what one of them computes: 3,699 rows of one
# element take 7 s, 128 rows of 128 elements 0.2 s. So a row, which is mostly a program's, counts as this many elements.
INTERPRETED_ROW = 64


class Extent(NamedTuple):
    """How large a case is.

    `touched`: elements of inputs and outputs; `written`: of outputs alone; `interpreted`: as `touched`, where a row (of
    the last axis) that has elements counts as INTERPRETED_ROW at least; `flops`: FLOP.
    """

    touched: int
    written: int
    interpreted: int
    flops: float


def extent(reference: Reference, case: Case) -> Extent:
    """How large a case is. Raises ReferenceFailed."""
    call = call_of(reference, case)
    read = [value.shape for value in call.arguments.values() if isinstance(value, TensorPlace)]
    written = [place.shape for place in call.outputs.values()]
    return Extent(
        touched=sum(map(math.prod, read + written)),
        written=sum(map(math.prod, written)),
        interpreted=sum(map(interpreted, read + written)),
        flops=reference.cost(case, {}, {}).flops,
    )


def interpreted(shape: tuple[int, ...]) -> int:
    """Elements of a tensor as the interpreter's cap counts them."""
    *rows, cols = shape or (1,)
    return math.prod(rows) * max(cols, INTERPRETED_ROW) if cols else 0


def beyond(reference: Reference, case: Case, config: Config, tier: str, interpreted: bool) -> Stop | None:
    """Why a case is beyond a device (the interpreter or a GPU) or tier, or None. Raises ReferenceFailed."""
    found = extent(reference, case)
    if interpreted:
        reason, elements, counted = "interpreter-cost", found.interpreted, f", a row as {INTERPRETED_ROW} at least"
        limits = (config.interpreter_elements, config.interpreter_flops)
    else:
        reason, elements, counted = "cost", found.written, ""
        limits = (config.case_elements, config.case_flops)
    if tier == "full" or (reference.one_shape and not interpreted):  # there is no smaller case
        limits = (limits[0] * FULL_TIER_TIMES, limits[1] * FULL_TIER_TIMES)
    if elements <= limits[0] and found.flops <= limits[1]:
        return None
    message = f"{elements} elements{counted} and {found.flops:.3g} FLOP; the cap is {limits[0]} and {limits[1]:.3g}"
    return Stop(reason, message)


def as_run(case: Case, interpreted: bool) -> Case:
    """The case with a dtype that the interpreter computes rightly."""
    dtype = str(dict(case.values).get("dtype", ""))
    return case.with_dtype(INTERPRETER_DTYPES[dtype]) if interpreted and dtype in INTERPRETER_DTYPES else case


def substitution(case: Case, interpreted: bool) -> str:
    """What is said of a case that runs with other data than it names, or nothing."""
    run, named = (dict(one.values).get("dtype") for one in (as_run(case, interpreted), case))
    return f"run with {run} data: the interpreter has no right {named}" if run != named else ""
