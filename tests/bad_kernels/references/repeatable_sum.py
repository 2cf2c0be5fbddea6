"""The sum of each row, with the promise of the same bits in every run: y[i] = sum_j x[i, j]."""

from kernelci.reference import Case, bench, check, tensor

repeatable = True


def cases():
    yield check(rows=40, cols=1, dtype="float32")
    yield check("odd sizes", rows=31, cols=503, dtype="float32")
    yield check("many partial sums", rows=64, cols=8000, dtype="float32")
    yield check("very many partial sums", rows=64, cols=2**18, dtype="float32")
    yield bench("a long row", rows=16, cols=2**18, dtype="float32")


def inputs(case: Case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}


def outputs(case: Case):
    return {"y": tensor(case.rows, dtype=case.dtype)}


def reference(x):
    return x.sum(dim=1)


def cost(case: Case):
    return case.rows * case.cols
