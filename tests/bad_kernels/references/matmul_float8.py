"""c[i, j] = sum_k a[i, k] * b[j, k], fp8 in and fp16 out, accumulated in float32, and multiplied as fp8."""

from kernelci.reference import Case, bench, check, tensor

requires = ("tensor core float8",)


def cases():
    dtype = "float8_e4m3fn"
    yield check("one tile", m=64, n=64, k=64, dtype=dtype)
    yield check("several tiles", m=128, n=192, k=256, dtype=dtype)
    yield bench("head projection of a small model", m=128, n=512, k=512, dtype=dtype)


def inputs(case: Case, draw):
    return {
        "a": draw.normal(case.m, case.k, dtype=case.dtype),
        "b": draw.normal(case.n, case.k, dtype=case.dtype),
    }


def outputs(case: Case):
    return {"c": tensor(case.m, case.n, dtype="float16")}


def reference(a, b):
    return a @ b.T


def cost(case: Case):
    return 2 * case.m * case.n * case.k
