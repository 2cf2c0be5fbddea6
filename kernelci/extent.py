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


class Extent(NamedTuple):
    """Elements of inputs and outputs, elements of outputs alone, rows (along the last axis) of inputs and outputs, and
    FLOP of a case."""

    touched: int
    written: int
    rows: int
    flops: float


def extent(reference: Reference, case: Case) -> Extent:
    """How large a case is. Raises ReferenceFailed."""
    call = call_of(reference, case)
    read = [value.shape for value in call.arguments.values() if isinstance(value, TensorPlace)]
    written = [place.shape for place in call.outputs.values()]
    rows = sum(math.prod(shape[:-1]) for shape in read + written if math.prod(shape))
    touched, own = (sum(map(math.prod, shapes)) for shapes in (read + written, written))
    return Extent(touched, own, rows, reference.cost(case, {}, {}).flops)


def beyond(reference: Reference, case: Case, config: Config, tier: str, interpreted: bool) -> Stop | None:
    """Why a case is beyond a device (the interpreter or a GPU) or tier, or None. Raises ReferenceFailed."""
    found = extent(reference, case)
    # No matter of the tier: the deadline of a call is the same in all.
    if interpreted and found.rows > config.interpreter_rows:
        return Stop("interpreter-cost", f"{found.rows} rows in all tensors; the cap is {config.interpreter_rows}")
    if interpreted:
        reason, elements = "interpreter-cost", found.touched
        limits = (config.interpreter_elements, config.interpreter_flops)
    else:
        reason, elements = "cost", found.written
        limits = (config.case_elements, config.case_flops)
    if tier == "full" or (reference.one_shape and not interpreted):  # there is no smaller case
        limits = (limits[0] * FULL_TIER_TIMES, limits[1] * FULL_TIER_TIMES)
    if elements <= limits[0] and found.flops <= limits[1]:
        return None
    return Stop(reason, f"{elements} elements and {found.flops:.3g} FLOP; the cap is {limits[0]} and {limits[1]:.3g}")


def as_run(case: Case, interpreted: bool) -> Case:
    """The case with a dtype that the interpreter computes rightly."""
    dtype = str(dict(case.values).get("dtype", ""))
    return case.with_dtype(INTERPRETER_DTYPES[dtype]) if interpreted and dtype in INTERPRETER_DTYPES else case


def substitution(case: Case, interpreted: bool) -> str:
    """What is said of a case that runs with other data than it names, or nothing."""
    run, named = (dict(one.values).get("dtype") for one in (as_run(case, interpreted), case))
    return f"run with {run} data: the interpreter has no right {named}" if run != named else ""
