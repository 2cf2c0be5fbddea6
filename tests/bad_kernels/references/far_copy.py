"""A copy of rows, up to more than 2^31 elements: y[i, j] = x[i, j]."""

import torch

from kernelci.reference import Case, bench, check, like, sizes

domain = {"rows": sizes(1, 2**25), "cols": sizes(1, 2**15)}  # the full tier makes its case beyond 2^31 elements of it
independent = {"rows": ("x",)}


def cases():
    yield check("odd sizes", rows=3, cols=127, dtype="int8")
    yield bench("a gigabyte", rows=2**15, cols=2**15, dtype="int8")


def inputs(case: Case, draw):
    return {"x": draw.integers(case.rows, case.cols, low=-128, high=128, dtype=torch.int8)}


def outputs(case: Case):
    return {"y": like("x")}


def reference(x):
    return x.clone()


def cost(case: Case):
    return 0
