"""A product that is promised in full precision: c[i, j] = sum_k a[i, k] * b[j, k], float32 throughout."""

from kernelci.reference import Case, bench, check, tensor


def cases():
    yield check(m=1, n=1, k=1, dtype="float32")
    yield check("prime sizes", m=33, n=47, k=101, dtype="float32")
    yield check("several tiles", m=128, n=96, k=256, dtype="float32")
    yield bench("head projection of a small model", m=128, n=512, k=512, dtype="float32")


def inputs(case: Case, draw):
    return {
        "a": draw.normal(case.m, case.k, dtype=case.dtype),
        "b": draw.normal(case.n, case.k, dtype=case.dtype),
    }


def outputs(case: Case):
    return {"c": tensor(case.m, case.n, dtype=case.dtype)}


def reference(a, b):
    return a @ b.T


def cost(case: Case):
    return 2 * case.m * case.n * case.k
