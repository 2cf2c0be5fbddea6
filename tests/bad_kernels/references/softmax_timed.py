"""Softmax over the last axis, with a bench case for kernels of the corpus that are timed."""

import torch

from kernelci.reference import Case, bench, check, like, sizes

domain = {"rows": sizes(1, 2048), "cols": sizes(1, 1024)}
independent = {"rows": ("x",)}


def cases():
    yield check("prime sizes", rows=3, cols=127, dtype="float32")
    yield check("one row", rows=1, cols=1024, dtype="float32")
    yield check("one past a power of two", rows=258, cols=33, dtype="float32")
    yield check("no rows", rows=0, cols=128, dtype="float32")
    yield bench("attention scores of 512 queries", rows=512, cols=1024, dtype="float32")


def inputs(case: Case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}


def outputs(case: Case):
    return {"y": like("x")}


def reference(x):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def cost(case: Case):
    return 5 * case.rows * case.cols
