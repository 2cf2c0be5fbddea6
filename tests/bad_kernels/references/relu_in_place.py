"""ReLU in place, on rows that may have a pitch: x[i, j] = max(x[i, j], 0)."""

from kernelci.reference import Case, alias, bench, check

layouts = {"x": "padded"}


def cases():
    yield check("prime sizes", rows=3, cols=127, dtype="float32")
    yield check("one row", rows=1, cols=64, dtype="float32")
    yield check("an odd number of columns", rows=17, cols=33, dtype="float32")
    yield bench("an MLP of 4096, 64 tokens", rows=64, cols=4096, dtype="float32")


def inputs(case: Case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}


def outputs(case: Case):
    return {"x": alias("x")}


def reference(x):
    return x.clamp(min=0)


def cost(case: Case):
    return case.rows * case.cols
