"""A linear layer's product: c[i, j] = sum_k a[i, k] * b[j, k], fp16 in and out, accumulated in float32, by the
tensor cores that the target has and its predecessors have not."""

from kernelci.reference import Case, bench, check, tensor

requires = ("newest tensor core",)


def cases():
    dtype = "float16"
    yield check("one tile", m=64, n=64, k=64, dtype=dtype)
    yield check("several tiles", m=128, n=192, k=256, dtype=dtype)
    yield bench("head projection of a small model", m=128, n=512, k=512, dtype=dtype)


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
